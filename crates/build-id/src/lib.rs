//! The build id (L10): a hash over the sources and locked dependencies that decide a simulation, for build scripts.
