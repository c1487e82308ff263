//! Tests of the ratchet on planted files: new, grown, shrunk and gone.

use super::*;

const PATH: &str = "crates/wire/src/link.rs";
const SUBJECT: &str = "fn crates/wire/src/link.rs Link::handle";

/// A method `Link::handle` of so many lines.
fn method(lines: usize) -> String {
    format!("//! Doc.\nimpl Link {{\n    fn handle() {{\n{}    }}\n}}\n", "        go();\n".repeat(lines - 2))
}

fn messages(list: &str, text: &str) -> Vec<String> {
    let violations = check(&Tree::planted(&[(LIST, list), (PATH, text)]));
    violations.into_iter().map(|violation| violation.message).collect()
}

#[test]
fn functions_up_to_the_limit_pass() {
    assert_eq!(messages("", &method(FUNCTION_LINES)), [""; 0]);
}

#[test]
fn a_new_long_function_fails_where_it_begins() {
    let tree = Tree::planted(&[(LIST, ""), (PATH, &method(FUNCTION_LINES + 1))]);
    let violations = check(&tree);
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].path.as_str(), violations[0].line), (PATH, 3));
    assert!(violations[0].message.contains("over the limit of 60"), "{}", violations[0]);
}

#[test]
fn a_listed_one_may_stay_but_not_grow() {
    assert_eq!(messages(&format!("70 {SUBJECT}\n"), &method(70)), [""; 0]);
    assert!(messages(&format!("70 {SUBJECT}\n"), &method(71))[0].contains("grew from 70 to 71"));
}

#[test]
fn shrinking_must_be_recorded() {
    assert!(messages(&format!("70 {SUBJECT}\n"), &method(65))[0].contains("shrank from 70 to 65"));
    assert!(messages(&format!("70 {SUBJECT}\n"), &method(10))[0].contains("no longer too long"));
}

#[test]
fn an_update_only_lowers() {
    let listed = parse(&format!("70 {SUBJECT}\n500 file gone.rs\n")).unwrap();
    let updated = |lines| {
        let measured = measure(&Tree::planted(&[(PATH, &method(lines))]));
        render(&shrink(&listed, &measured)).lines().skip(3).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(updated(65), format!("65 {SUBJECT}"));
    assert_eq!(updated(99), format!("70 {SUBJECT}"));
    assert_eq!(updated(10), "");
}

#[test]
fn tests_beside_the_code_do_not_make_a_file_long() {
    let code = "//! Doc.\n".to_owned() + &"// line\n".repeat(FILE_LINES - 1);
    let tests = "#[cfg(test)]\nmod tests {\n".to_owned() + &"    // line\n".repeat(300) + "}\n";
    assert!(messages("", &code).is_empty());
    // The attribute itself is a line of the file.
    let short = code.replacen("// line\n", "", 1);
    assert!(messages("", &(short + &tests)).is_empty());
    assert_eq!(messages("", &(code + "// one more\n")).len(), 1);
}

#[test]
fn a_file_of_tests_has_a_limit_of_its_own() {
    let long = "//! Doc.\n".to_owned() + &"// line\n".repeat(TEST_FILE_LINES);
    let measured = measure(&Tree::planted(&[("crates/wire/tests/it/pair.rs", &long)]));
    assert_eq!(measured["file crates/wire/tests/it/pair.rs"].limit, TEST_FILE_LINES);
}

#[test]
fn functions_of_traits_and_tests_are_named_and_judged() {
    let body = "go();\n".repeat(80);
    let text = format!(
        "//! Doc.\nimpl fmt::Display for Link {{ fn fmt() {{\n{body}}} }}\n#[test]\nfn story() {{\n{body}}}\n"
    );
    let measured = measure(&Tree::planted(&[(PATH, &text)]));
    let subjects: Vec<&Subject> = measured.keys().collect();
    assert_eq!(subjects, ["fn crates/wire/src/link.rs <Link as Display>::fmt"]);
}

#[test]
fn a_list_that_cannot_be_read_is_a_violation() {
    assert!(messages("seventy fn x y\n", "//! Doc.\n")[0].contains("not a length"));
}
