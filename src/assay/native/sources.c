/* The digest of the sources that this library was compiled from, as native/compilation.py has it. */
const char assay_sources[] = ASSAY_SOURCES;
