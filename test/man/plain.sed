# What a page says, without the escapes of roff.
s/\\-/-/g
s/\\(aq/'/g
s/\\(ga/`/g
s/\\(ha/^/g
s/\\(ti/~/g
s/\\\[u25CF\]/●/g
s/\\\[u2500\]/─/g
s/\\\[u25B6\]/▶/g
s/\\\[u25C0\]/◀/g
s/\\\[u2502\]/│/g
s/\\[&%]//g
s/\\e/\\/g
