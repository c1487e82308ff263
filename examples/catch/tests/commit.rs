//! Programs of a package whose build script calls `emit_commit` know their git commit.

use catch::Catch;
use sametick::games;

#[test]
fn programs_of_this_package_say_its_commit() {
    // Empty outside of a repository; but the build script has set it.
    assert_eq!(games![Catch].commit(), env!("SAMETICK_COMMIT"));
}
