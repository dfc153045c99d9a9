/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - what depends on a size, through points. */
#include "fabric/fabric.h"

double hk__curve_at(const struct hk__curve *curve, double bytes)
{
	const struct hk__point *points = curve->points;
	uint32_t n = curve->npoints, i = 1;

	if (n == 0)
		return 0;
	if (n == 1 || bytes <= points[0].bytes)
		return points[0].value;
	while (i < n - 1 && bytes > points[i].bytes)
		i++;
	double slope =
		(points[i].value - points[i - 1].value) / (points[i].bytes - points[i - 1].bytes);
	if (bytes > points[i].bytes && slope < 0)
		slope = 0;
	return points[i].value + slope * (bytes - points[i].bytes);
}
