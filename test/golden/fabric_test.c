/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_test.c - what fabrics look like as pictures and as files, compared with
 * the files beside this one. UPDATE_GOLDEN=1 writes them anew.
 */
#include "harness.h"

#include <hocket/fabric.h>

typedef enum hk_status (*fabric_print)(const struct hk_fabric *fabric, FILE *file,
				       struct hk_why *why);

/* A path from the folder this file lies in. */
static void golden_path(char *path, size_t size, const char *name)
{
	const char *end = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*s%s", end ? (int)(end + 1 - __FILE__) : 0, __FILE__, name);
}

static char *fabric_text(const char *spec, fabric_print print)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", spec, why.text);
	CHECK_EQ(print(fabric, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	hk_fabric_free(fabric);
	return text;
}

static void fabric_check(const char *spec, const char *name, fabric_print print)
{
	char path[1024], *text = fabric_text(spec, print), *golden = calloc(1, 1 << 16);

	CHECK(golden);
	golden_path(path, sizeof(path), name);
	FILE *file = fopen(path, getenv("UPDATE_GOLDEN") ? "w+" : "r");
	CHECK(file);
	if (getenv("UPDATE_GOLDEN"))
		CHECK(fputs(text, file) >= 0);
	rewind(file);
	CHECK(fread(golden, 1, (1 << 16) - 1, file) > 0);
	CHECK(fclose(file) == 0);
	CHECK_STR(text, golden);
	free(golden);
	free(text);
}

TEST(fabric_pictures)
{
	fabric_check("dgx-h100:16384", "dgx-h100-16384.fabric", hk_fabric_print);
	fabric_check("dgx-a100:2,net=ethernet", "dgx-a100-2.fabric", hk_fabric_print);
	fabric_check("slingshot-a100:70,routing=hash", "slingshot-a100-70.fabric", hk_fabric_print);
	fabric_check("tcp-cluster:8,ranks=4", "tcp-cluster-8.fabric", hk_fabric_print);
	fabric_check("torus:8x8x8", "torus-8x8x8.fabric", hk_fabric_print);
	fabric_check("dragonfly:9x4x2", "dragonfly-9x4x2.fabric", hk_fabric_print);
	fabric_check("switch:8", "switch-8.fabric", hk_fabric_print);
}

TEST(fabric_examples)
{
	char path[1024];

	golden_path(path, sizeof(path), "../../fabrics/two-kinds.yaml");
	fabric_check(path, "two-kinds.fabric", hk_fabric_print);
	golden_path(path, sizeof(path), "../../fabrics/graph.yaml");
	fabric_check(path, "graph.fabric", hk_fabric_print);
}

TEST(fabric_files)
{
	fabric_check("dgx-h100:300", "dgx-h100-300.fabric.yaml", hk_fabric_print_file);
	fabric_check("switch:4", "switch-4.fabric.yaml", hk_fabric_print_file);
}

/* A stream that is full is noticed. */
TEST(fabric_lost_output)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;
	FILE *file = fopen("/dev/full", "w");

	CHECK(file);
	CHECK(setvbuf(file, NULL, _IONBF, 0) == 0);
	CHECK_EQ(hk_fabric_create("switch:4", NULL, NULL, &fabric), HK_OK);
	CHECK_EQ(hk_fabric_print(fabric, file, &why), HK_EIO);
	CHECK_HAS(why.text, "cannot write");
	CHECK_EQ(hk_fabric_print_file(fabric, file, &why), HK_EIO);
	hk_fabric_free(fabric);
	fclose(file);
}
