//! What templates make of messages, and what they may not.

use super::*;

#[test]
fn a_template_may_refuse() {
    let refused = Template::new("{{ raise_exception('no system prompt') }}", "", "").render(&[]);
    let Err(Error::Template { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("no system prompt"), "{reason}");
}

#[test]
fn blocks_leave_no_lines_behind() {
    let template = "{% for m in messages %}\n{{ bos_token }}{{ m.role }}: {{ m['content'] }}\n{% endfor %}\n";
    let text = Template::new(template, "<s>", "").render(&[Message::user("hi"), Message::user("there")]);
    assert_eq!(text.unwrap(), "<s>user: hi\n<s>user: there\n");
}

#[test]
fn a_broken_template_is_an_error() {
    for source in ["{% for %}", "{{ x.strip() }}"] {
        assert!(matches!(Template::new(source, "", "").render(&[]), Err(Error::Template { .. })));
    }
}

/// What a template makes of three messages.
fn rendered(source: &str) -> Result<String> {
    let said = |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    let messages = [said("system", "é <b>"), said("user", "it's\n"), said("user", "</think>x")];
    Template::new(source, "<s>", "</s>").render(&messages)
}

fn refused(source: &str, wanted: &str) {
    let begun = std::time::Instant::now();
    let shown: String = source.chars().take(80).collect();
    match rendered(source) {
        Err(e @ Error::Template { .. }) => {
            let e = e.to_string();
            assert!(e.contains(wanted) && e.contains("chat template") && e.contains("help:"), "{shown}: {e}");
        }
        other => panic!("{shown}: {:?}", other.map(|text| text.len())),
    }
    assert!(begun.elapsed() < TIME, "{shown}");
}

#[test]
fn templates_that_nest_too_deep_are_refused() {
    for sign in ["-", "not ", "(", "[", "1+", "1 if 1 else ", "2**", "{1:", "x[", "f(", "x.y(", "a~"] {
        refused(&format!("{{{{ {}1 }}}}", sign.repeat(100_000)), "");
        refused(&format!("{{{{ {}1 }}}}", sign.repeat(20_000)), "");
    }
    refused(&format!("{{{{ {}1 }}}}", "- ".repeat(100_000)), "4096 words and signs within braces");
    refused(&format!("{{{{ x{} }}}}", "|trim".repeat(40_000)), "4096 words and signs within braces");
    refused(&format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(20_000)), "8192 braces");
    refused(&"{% if 1 %}".repeat(8000), "recursion");
    refused(&"x".repeat(1 << 20), "262144 are the most");
    // As deep as it goes, which is less than what the stack has room for.
    for sign in ["-", "not ", "1+", "1~", "1 if 1 else ", "1 and ", "1<", "2**"] {
        let signs =
            4000 / sign.split_inclusive([' ', '+', '~', '<']).count().max(sign.matches("**").count() * 2);
        let _ = rendered(&format!("{{{{ {}1 }}}}", sign.repeat(signs)));
    }
    let _ = rendered(&format!("{{{{ x{} }}}}", ".y".repeat(2000)));
    let _ = rendered(&format!("{{{{ 'x'{} }}}}", "|trim".repeat(2000)));
    let elif = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(8000));
    assert_eq!(rendered(&elif).unwrap(), "");
}

#[test]
fn templates_that_do_not_end_are_refused() {
    refused(
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "2000000 steps",
    );
    refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "");
    refused("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "");
    assert_eq!(rendered("{{ 'aba'.count('') }}{{ 'aba'.count('a') }}").unwrap(), "42");
}

#[test]
fn templates_that_take_all_memory_are_refused() {
    let bytes = "bytes of texts and lists";
    // The text between blocks.
    let long = format!(
        "{{% set a %}}{{% for i in range(100000) %}}{}{{% endfor %}}{{% endset %}}",
        "a".repeat(10_000)
    );
    let looped = |start: &str, step: &str| {
        format!(
            "{{% set n = namespace(x={start}) %}}{{% for i in range(60) %}}{{% set n.x = {step} %}}{{% endfor %}}{{{{ n.x }}}}"
        )
    };
    for source in [
        "{{ 'a' * 20000000000 }}",
        "{{ [1] * 99999999999 }}",
        "{{ [1, 2] * 9223372036854775807 }}",
        "{{ [1] * 99999999 == [] }}",
        "{{ 'x'|indent(999999999) }}",
        "{{ '%999999999d'|format(1) }}",
        "{{ '%*d'|format(999999999, 1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ [1]|batch(99999999999, 'x') }}",
        "{{ [1]|slice(99999999999) }}",
        "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
        "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
        "{{ ('b' * 1000000).join(range(10000)) }}",
        "{{ range(10000)|join('b' * 1000000) }}",
        "{{ ('{0}' * 100000).format('x' * 100000) }}",
        &long,
        "{{ ([['x' * 1000000]] * 100)|map('replace', 'x', 'y' * 1000)|list }}",
        "{% macro f(x) %}{{ x }}{{ x }}{% endmacro %}{% set a = 'x' * 1000000 %}{{ f(f(f(f(f(f(f(f(f(f(a)))))))))) }}",
    ] {
        refused(source, bytes);
    }
    refused(&looped("'aaaaaaaaaaaaaaaa'", "n.x ~ n.x"), bytes);
    refused(&looped("'aaaaaaaaaaaaaaaa'", "n.x + n.x"), bytes);
    refused(&looped("[1]", "n.x + n.x"), bytes);
    refused(&looped("[1]", "[n.x, n.x]"), bytes);
    refused(&looped("{'a': 1}", "{'a': n.x, 'b': n.x}"), bytes);
    refused(&looped("'a'", "'%s%s'|format(n.x, n.x)"), bytes);
    refused(&looped("'a'", "[n.x, n.x]|join"), bytes);
    refused(&looped("1", "[n.x]").replace("range(60)", "range(100)"), "lists within each other");
    refused("{{ ('a' * 99999999)|list }}", "takes a text of 99999999 bytes apart");
    refused("{{ ('a' * 99999999)[1:] }}", "takes a text of 99999999 bytes apart");
    refused("{{ ['a']|map('list') }}", "`map` with `list`");
    refused("{{ ['a']|map('map', 'upper') }}", "`map` with `map`");
    refused("{% set n = namespace() %}{% set n.x = n %}{{ n }}", "a namespace into another");
    refused("{% set n = namespace() %}{% set n.x = [n] %}{{ n }}", "a namespace into another");
    refused("{% macro f() %}{% endmacro %}{{ f(*[1]) }}", "as arguments");
    refused("{% include 'x' %}", "`include`");
}

#[test]
fn templates_have_what_those_of_transformers_have() {
    for (source, wanted) in [
        ("{{ tools is none }}{{ documents is none }}{% if not tools %}x{% endif %}", "TrueTruex"),
        ("a\n", "a"),
        ("a\n\n", "a\n"),
        ("{{ 'b' }}\n", "b"),
        (
            "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% break %}{% endfor %}",
            "user",
        ),
        (
            "{% for m in messages %}{%- generation -%} {{ m.role }} {%- endgeneration -%} {% endfor %}",
            "systemuseruser",
        ),
        ("{% generation %}\na{% endgeneration %}\nb{{ ' {% generation %}' }}", "ab {% generation %}"),
        ("{{ messages[0] | tojson }}", r#"{"role": "system", "content": "é <b>"}"#),
        (
            "{{ messages[1:2] | tojson(indent=2) }}",
            "[\n  {\n    \"role\": \"user\",\n    \"content\": \"it's\\n\"\n  }\n]",
        ),
        (
            "{{ {'b': 1.0, 'a': [none, true, []], 'c': {}} | tojson(sort_keys=true) }}",
            r#"{"a": [null, true, []], "b": 1.0, "c": {}}"#,
        ),
        (
            "{{ {'b': [1, 2]} | tojson(separators=(',', ':')) }}{{ 'é/' | tojson(ensure_ascii=true) }}",
            r#"{"b":[1,2]}"\u00e9/""#,
        ),
        (
            "{{ messages[:2] }}",
            r#"[{'role': 'system', 'content': 'é <b>'}, {'role': 'user', 'content': "it's\n"}]"#,
        ),
        (
            "{{ {'b': 'x', 'a': none} }}{{ 'a' ~ [1, 'b'] ~ none ~ true ~ nothing }}",
            "{'b': 'x', 'a': None}a[1, 'b']NoneTrue",
        ),
        ("{{ ['a']|string }}{{ [['a'], 1]|join(', ') }}{{ ', '.join(['a', 'b']) }}", "['a']['a'], 1a, b"),
        (
            "{{ 1e20 }} {{ 1.5 }} {{ 2 * 3.5 }} {{ 2 * 3 + 4 }} {{ 'ab' * 2 }}{{ [1] * 2 + [3] }}{{ 'a' * -1 }}",
            "1e+20 1.5 7.0 10 abab[1, 1, 3]",
        ),
        (
            "{{ 'abcdef'[1:-1] }}{{ 'abcdef'[::-2] }}{{ 'abc'[0:2:-1] }}{{ 'abc'[5:] }}{{ [1, 2, 3][-2:] }}",
            "bcdefdb[2, 3]",
        ),
        ("{{ 'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}", "a"),
        ("{{ 'a\\nb\\n'|indent(2) }}|{{ 'a\\n\\nb'|indent(1, true, blank=true) }}", "a\n  b\n| a\n \n b"),
        (
            "{{ \"they're 2nd x\".title() }}{{ 'aXbX'.replace('X', 'y', 1) }}{{ '%s-%d'|format('a', 3) }}{{ '{}!'.format(1) }}",
            "They'Re 2Nd Xaybxa-31!".replace("ybx", "ybX").as_str(),
        ),
        (
            "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join('|') }}",
            "it's\n|</think>x",
        ),
        (
            "{{ messages[2].content.split('</think>')[-1] }}{{ messages|length }}{{ messages[::-1][0].role }}",
            "x3user",
        ),
        (
            "{% filter upper %}a{{ messages[0].role }}{% endfilter %}{% set x | trim %} b {% endset %}{{ x }}",
            "ASYSTEMb",
        ),
        (
            "{% macro f(m, x='d') %}<{{ m.role }}{{ x }}{{ caller() if caller }}>{% endmacro %}{{ f(messages[0]) }}{% call f(messages[1], x=1) %}c{% endcall %}",
            "<systemd><user1c>",
        ),
        (
            "{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}{{ {'a': 1}.keys()|list }}",
            "b1a2['a']",
        ),
        (
            "{% set n = namespace(a=0) %}{% for m in messages %}{% set n.a = n.a + 1 %}{% endfor %}{{ n.a }}",
            "3",
        ),
    ] {
        assert_eq!(rendered(source).map_err(|e| e.to_string()), Ok(wanted.into()), "{source}");
    }
    let date = rendered("{{ strftime_now('%Y-%m-%d') }}").unwrap();
    assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    refused("{{ strftime_now('%Q') }}", "does not know the `%Q`");
}

#[test]
fn places_in_a_text_are_characters() {
    let source = "{% set c = 'hi é\n  there' %}{{ c[c.find('there'):] }} {{ 'éaéa'.rfind('a') }} {{ 'éa'.index('a') }} \
                  {{ 'aéa'.find('a', 1) }} {{ 'aéa'.find('a', -3, -1) }} {{ 'é'.find('x') }} {{ 'é'.find('', 2) }} {{ 'é'.find('', 1) }}";
    assert_eq!(rendered(source).unwrap(), "there 3 1 2 0 -1 -1 1");
    refused("{{ 'é'.rindex('x') }}", "part that is looked for");
}

#[test]
fn line_breaks_are_those_of_unix() {
    let source = "a\r\n{% for m in messages %}\r\n{{ m.role }}\r{% endfor %}\r\nb";
    assert_eq!(rendered(source).unwrap(), "a\nsystem\nuser\nuser\nb");
}

#[test]
fn formats_that_the_engine_cannot_take_are_refused() {
    for source in ["{{ '%.70000f' % 1.5 }}", "{{ '%.70000e' % 1 }}", "{{ '{:.400000f}'.format(1) }}"] {
        refused(source, "precision above 65535");
    }
    refused("{{ '%(é' % 1 }}", "without its closing bracket");
    assert_eq!(rendered("{{ '%%(é %d' % 1 }}").unwrap(), "%(é 1");
    // Numbers of the text are no widths.
    let source = "{{ '20260726 %s 1000000' % 1 }} {{ '1234567 {} 99999999'.format(2) }} {{ '%(a)5d 70000' % {'a': 3} }}";
    assert_eq!(rendered(source).unwrap(), "20260726 1 1000000 1234567 2 99999999     3 70000");
}

#[test]
fn looking_through_long_lists_is_paid_for() {
    let list = "{% set l = range(100000)|list %}{% set l = l+l+l+l+l %}";
    for test in ["-1 in l", "l == l", "l is in([l])", "l is eq(l)"] {
        let source =
            format!("{list}{{% for i in range(100000) %}}{{% if {test} %}}x{{% endif %}}{{% endfor %}}");
        refused(&source, "bytes of texts and lists");
    }
}

#[test]
fn a_refusal_is_short_and_plain() {
    refused(
        "{{ raise_exception('\x1b[31mno\nhelp: run this') }}",
        "refuses the messages: \\u{1b}[31mno\\nhelp: run this",
    );
    let Err(e) = rendered("{{ raise_exception('é' * 1000000) }}") else { panic!("rendered") };
    assert!(e.to_string().len() < 2000);
}
