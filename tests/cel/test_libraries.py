"""The functions of the libraries, fast and counted alike."""

from __future__ import annotations

import pytest

from tests.cel.evaluation import faults, shown


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size('é😀') + size(b'é') + size([1]) + size({'a': 1})", "6"),
        ("'abc'.size() + [1, 2].size() + {}.size() + b''.size()", "5"),
        ("'abc'.contains('') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')", "true"),
        ("'aXb'.matches('[A-Z]') && matches('a', '^a$')", "true"),
        ("int('-5') + int(5u) + int(5.9) + int(duration('5ns')) + int(timestamp(5))", "15"),
        ("uint('5') + uint(5) + uint(5.9)", "15u"),
        ("double('1.5') + double(1) + double(1u)", "3.5"),
        ("string(1) + string(1u) + string(1.5) + string(true) + string(b'x') + string('y')", '"111.5truexy"'),
        (
            "string(1000000.0) + ' ' + string(123456.0) + ' ' + string(0.00001) + ' ' + string(1e100)",
            '"1e+06 123456 1e-05 1e+100"',
        ),
        (
            "string(duration('90m')) + string(timestamp('2024-01-02T03:04:05.5+01:00'))",
            '"5400s2024-01-02T03:04:05.5+01:00"',
        ),
        ("bool('t') && !bool('False')", "true"),
        ("bytes('é')", r'b"\xc3\xa9"'),
        ("type(type(1)) == type", "true"),
    ],
)
def test_standard_functions(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("int(x)", "type conversion error from 'string' to 'int'"),
        ("uint(x)", "type conversion error from 'string' to 'uint'"),
        ("double(x)", "type conversion error from 'string' to 'double'"),
        ("bool(x)", "type conversion error from 'string' to 'bool'"),
        ("duration(x)", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(x)", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
    ],
)
def test_conversions_refuse_what_they_cannot_read(text: str, error: str) -> None:
    assert shown(text, x="nope") == f"error: {error}"


@pytest.mark.parametrize("text", ["int(1e19)", "int(18446744073709551615u)", "int(-1e19)", "uint(-1)", "uint(1e20)"])
def test_conversions_that_overflow_do_not_compile_as_constants(text: str) -> None:
    with pytest.raises(Exception, match="overflow"):
        shown(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("duration('1h30m1.5s500ms2us3ns') == duration('5402000002003ns')", "true"),
        ("duration('-1.5s') + duration('3s')", 'duration("1.5s")'),
        ("timestamp('2024-02-28T23:00:00Z') + duration('2h')", 'timestamp("2024-02-29T01:00:00Z")'),
        ("timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z')", 'duration("86400s")'),
        ("timestamp('2024-01-02T00:00:00Z') - duration('24h')", 'timestamp("2024-01-01T00:00:00Z")'),
        ("timestamp('2024-01-02T00:00:00Z') == timestamp('2024-01-02T01:00:00+01:00')", "true"),
        (
            (
                "cel.bind(t, timestamp('2024-02-29T13:14:15.016Z'), [t.getFullYear(), t.getMonth(), t.getDayOfMonth(),"
                " t.getDate(), t.getDayOfYear(), t.getDayOfWeek(), t.getHours(), t.getMinutes(), t.getSeconds(),"
                " t.getMilliseconds()])"
            ),
            "[2024, 1, 28, 29, 59, 4, 13, 14, 15, 16]",
        ),
        ("timestamp('2024-01-01T00:00:00Z').getHours('-02:30')", "21"),
        ("timestamp('2024-01-01T00:00:00Z').getDate('America/New_York')", "31"),
        ("timestamp('2024-01-01T00:00:00Z').getHours('Nowhere/Nope')", "error: unknown time zone Nowhere/Nope"),
        (
            "cel.bind(d, duration('3661s'), [d.getHours(), d.getMinutes(), d.getSeconds(), d.getMilliseconds()])",
            "[1, 61, 3661, 3661000]",
        ),
        ("-dyn(duration('1s'))", 'duration("-1s")'),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "error: timestamp overflow"),
        ("duration('9223372036s') + duration('9223372036s')", "error: duration overflow"),
    ],
)
def test_times(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'abc'.charAt(1) + 'abc'.charAt(3)", '"b"'),
        ("'abc'.charAt(4)", "error: index out of range: 4"),
        ("'tacocat'.indexOf('ac') + 'tacocat'.indexOf('none')", "0"),
        ("'tacocat'.indexOf('a', 3)", "5"),
        ("'tacocat'.indexOf('', 3)", "3"),
        ("'tacocat'.indexOf('a', -1)", "error: index out of range: -1"),
        ("'tacocat'.lastIndexOf('at') + 'tacocat'.lastIndexOf('')", "12"),
        ("'tacocat'.lastIndexOf('a', 3)", "1"),
        ("'tacocat'.lastIndexOf('a', 70)", "-1"),
        ("'TacoCÆt'.lowerAscii() + 'tacocæt'.upperAscii()", '"tacocÆtTACOCæT"'),
        (
            "'hello hello'.replace('he', 'we') + 'hello'.replace('l', 'L', 1) + 'ab'.replace('', '-')",
            '"wello welloheLlo-a-b-"',
        ),
        (
            "'a,b,c'.split(',') + 'a,b,c'.split(',', 2) + 'ab'.split('') + 'a'.split(',', 0)",
            '["a", "b", "c", "a", "b,c", "a", "b"]',
        ),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", '"cattaco"'),
        ("'a'.substring(2)", "error: index out of range: 2"),
        ("'abc'.substring(2, 1)", "error: invalid substring range. start: 2, end: 1"),
        ("' \\t a b \\u2003'.trim()", '"a b"'),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", '"aba-b"'),
        ("strings.quote('a\"\\n')", r'"\"a\\\"\\n\""'),
        ("'%s %d %x %X %o %b %.2f %%'.format(['s', 10, 255, 255, 8, 5, 1234.567])", '"s 10 ff FF 10 101 1,234.57 %"'),
        (
            "'%s'.format([[1, 'a', 1.5, true, null, duration('1s')]])",
            r'"[1, \"a\", 1.500000, true, null, duration(\"1s\")]"',
        ),
        ("'%s'.format([{'b': 1, 'a': 2}])", r'"{\"a\":2, \"b\":1}"'),
        ("'%.6e'.format([1052.032911275])", '"1.052033\\U0000202f×\\U0000202f10⁰³"'),
        ("'%x'.format(['hi']) + '%X'.format([b'\\xab'])", '"6869AB"'),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2].sum() == 3 && [1u].sum() == 1u && [1.5].sum() == 1.5", "true"),
        ("[duration('1s'), duration('2s')].sum()", 'duration("3s")'),
        ("[3, 1].min() + [3, 1].max()", "4"),
        ("['b', 'a'].min()", '"a"'),
        ("[1].filter(x, x > 1).max()", "error: max called on empty list"),
        ("[1, 1, 2].isSorted() && !['b', 'a'].isSorted()", "true"),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1) + [1].indexOf(5)", "1"),
        ("[1, 2, 3, 4].slice(1, 3)", "[2, 3]"),
        ("[1].slice(0, 2)", "error: cannot slice(0, 2), list is length 1"),
        ("[[1, [2]], [3]].flatten()", None),
        ("[[1], [2, 3]].flatten()", "[1, 2, 3]"),
        ("[[[1], [2]], [[3]]].flatten(2)", "[1, 2, 3]"),
        ("[1, 2, 1].distinct()", "[1, 2]"),
        ("[3, 1, 2].sort() + [3, 1, 2].reverse()", "[1, 2, 3, 2, 1, 3]"),
        ("['bb', 'a'].sortBy(s, s.size())", '["a", "bb"]'),
        ("[dyn(1), dyn('a')].sort()", "error: list elements must have the same type"),
        ("lists.range(3)", "[0, 1, 2]"),
        ("[1, 2].first().value() + [1, 2].last().value()", "3"),
        ("[optional.of(1), optional.none()].unwrapOpt() + optional.unwrap([optional.of(2)])", "[1, 2]"),
        ("sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])", "true"),
        ("sets.contains([1], [2]) || sets.intersects([1], [2]) || sets.equivalent([1], [1, 2])", "false"),
    ],
)
def test_lists_and_sets(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(Exception, match=r"found no matching overload|expected type"):
            shown(text)
    else:
        assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a1b22'.find('[0-9]+') + 'abc'.find('x')", '"1"'),
        ("'a1b22'.findAll('[0-9]+') + 'a1b22'.findAll('[0-9]+', 1) + 'a1'.findAll('[0-9]', 0)", '["1", "22", "1"]'),
        ("'baac'.findAll('a*')", '["", "aa", ""]'),
        ("'é1'.find('.')", '"é"'),
        ("'a'.find(x)", "error: error parsing regexp: missing ): ("),
        ("'a'.matches(x)", "error: error parsing regexp: missing ): ("),
    ],
)
def test_patterns(text: str, value: str) -> None:
    assert shown(text, x="(") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            (
                "cel.bind(u, url('https://user@example.com:8080/a%20b?k=v&k=w&e=%3D#f'), [u.getScheme(), u.getHost(),"
                " u.getHostname(), u.getPort(), u.getEscapedPath()])"
            ),
            '["https", "example.com:8080", "example.com", "8080", "/a%20b"]',
        ),
        ("url('https://a/?k=v&k=w&e=%3D&bad=%zz').getQuery()", '{"k": ["v", "w"], "e": ["="]}'),
        ("url('https://[::1]:80/').getHostname() + url('/path').getEscapedPath()", '"::1/path"'),
        ("url('https://a/é').getEscapedPath()", '"/%C3%A9"'),
        ("isURL('https://a:80') && isURL('/x') && !isURL('a/b') && !isURL('') && !isURL('https://a:b/')", "true"),
        ("!isURL('../x') && !isURL('https://a b/') && !isURL('/%zz') && isURL('mailto:a@b')", "true"),
        ("url('https://a') == url('https://a')", "true"),
        ("ip('10.0.0.1').family() + ip('::1').family()", "10"),
        ("isIP('127.0.0.1') && !isIP('127.0.0.256') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%en0')", "true"),
        ("ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')", "true"),
        (
            "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback() && ip('224.0.0.1').isLinkLocalMulticast()",
            "true",
        ),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()", "true"),
        ("!ip('255.255.255.255').isGlobalUnicast() && ip('fe80::1').isLinkLocalUnicast()", "true"),
        ("string(ip('::0001')) + string(cidr('10.0.0.1/8'))", '"::110.0.0.1/8"'),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))", "true"),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
            "true",
        ),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').prefixLength() == 8", "true"),
        ("string(cidr('10.1.2.3/8').ip())", '"10.1.2.3"'),
        (
            "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('::ffff:1.2.3.4/24')",
            "true",
        ),
    ],
)
def test_urls_and_networks(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("format.dns1123Label().validate('a-b').hasValue()", "false"),
        ("format.dns1123Label().validate('A').value().size()", "1"),
        (
            "format.dns1123LabelPrefix().validate('a-').hasValue() || format.dns1035Label().validate('a').hasValue()",
            "false",
        ),
        ("format.dns1035Label().validate('1a').hasValue() && format.labelValue().validate('-').hasValue()", "true"),
        ("format.qualifiedName().validate('example.com/Name').hasValue()", "false"),
        (
            "format.qualifiedName().validate('/Name').hasValue() && format.qualifiedName().validate('a/').hasValue()",
            "true",
        ),
        ("format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", "false"),
        ("format.byte().validate('aGk=').hasValue() || format.date().validate('2024-02-29').hasValue()", "false"),
        ("format.byte().validate('a').hasValue() && format.date().validate('2023-02-29').hasValue()", "true"),
        (
            "format.datetime().validate('2024-01-01T00:00:00Z').hasValue() || format.uri().validate('/x').hasValue()",
            "false",
        ),
        ("format.named('dns1123Label').hasValue() && !format.named('nope').hasValue()", "true"),
        ("format.named('uuid').value() == format.uuid()", "true"),
    ],
)
def test_formats(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quantity('1.5Gi') == quantity('1536Mi') && quantity('1') != quantity('2')", "true"),
        ("quantity('1k').compareTo(quantity('1000')) == 0 && quantity('1').compareTo(quantity('2')) < 0", "true"),
        ("quantity('1').isLessThan(quantity('2')) && quantity('2').isGreaterThan(quantity('1'))", "true"),
        ("sign(quantity('-1')) + sign(quantity('0')) + sign(quantity('5'))", "0"),
        ("quantity('50k').asInteger() + quantity('2').add(3).asInteger()", "50005"),
        ("quantity('1.5').asInteger()", "error: cannot convert value to integer"),
        ("quantity('1000m').isInteger() || quantity('1.5Gi').isInteger() || quantity('1024Ti').isInteger()", "false"),
        ("quantity('50000000G').isInteger() && quantity('1.5k').isInteger() && quantity('40Gi').isInteger()", "true"),
        ("quantity('1500m').asApproximateFloat()", "1.5"),
        ("quantity('2').sub(quantity('500m')).add(1).sub(1).compareTo(quantity('1500m'))", "0"),
        ("isQuantity('1Gi') && !isQuantity('1 Gi') && !isQuantity('')", "true"),
        (
            "quantity(x)",
            "error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("semver('1.2.3').compareTo(semver('1.2.3+b')) == 0 && semver('1.2.3') == semver('1.2.3+b')", "true"),
        ("semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('2.0.0').isGreaterThan(semver('1.9.9'))", "true"),
        ("[semver('1.2.3').major(), semver('1.2.3').minor(), semver('1.2.3').patch()]", "[1, 2, 3]"),
        ("semver('v1.02', true)", 'semver("1.2.0")'),
        ("isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v1', true) && !isSemver('1.0-rc', true)", "true"),
    ],
)
def test_quantities_and_versions(text: str, value: str) -> None:
    assert shown(text, x="nope!") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("url('//a.b/c').getHost()", '"a.b"'),
        ("url('HTTPS://a.b/c d') == url('https://a.b/c%20d')", "true"),
        ("url('https://a.b/c') == url('https://a.b/c?')", "false"),
        ("url('https://u:p@a.b/c') == url('https://a.b/c')", "false"),
        ("url('https://a.b/c#x') == url('https://a.b/c#x')", "true"),
        ("['*', 'http:*', '/a', 'mailto:a@b', 'http://a:/', 'http://[::1]:80/'].all(u, isURL(u))", "true"),
        ("['*?a', 'a', ':a', '', 'http://::1/', 'http://a:80:80/', 'http://[1.2.3.4]/'].exists(u, isURL(u))", "false"),
        ("url('http://[fe80::1%25en0]:8080/').getHostname()", '"fe80::1%en0"'),
    ],
)
def test_urls_are_read_and_compared_as_go_does(text: str, value: str) -> None:
    assert shown(text) == value


def test_link_local_multicast_has_any_flags() -> None:
    assert shown("['ff02::1', 'ff12::1', 'ff32::1', '224.0.0.1'].all(a, ip(a).isLinkLocalMulticast())") == "true"
    assert shown("['ff05::1', 'fe02::1', '224.0.1.1'].exists(a, ip(a).isLinkLocalMulticast())") == "false"


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("byte", ("aGVsbG8=", "aGVs", "YQ=="), ("", "aGVs\\nbG8=", "aGV", "a===")),
        ("date", ("2024-02-29", "0000-02-29"), ("2023-02-29", "2024-1-01", "2024-13-01", "")),
        (
            "datetime",
            ("2024-01-01T00:00:00Z", "2024-01-01t23:59:59.5z", "2024-01-01T00:00:00+25:99", "2024-01-01T00:00:00ZTx"),
            ("2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-02-30T00:00:00Z", "t"),
        ),
    ],
)
def test_formats_take_what_kubernetes_takes(name: str, valid: tuple[str, ...], invalid: tuple[str, ...]) -> None:
    assert shown(f"{list(valid)}.exists(v, format.{name}().validate(v).hasValue())".replace("'", '"')) == "false"
    texts = ", ".join(f'"{text}"' for text in invalid)
    assert shown(f"[{texts}].all(v, format.{name}().validate(v).hasValue())") == "true"


def test_version_numbers_beyond_int_wrap_around() -> None:
    assert shown("semver('18446744073709551615.9223372036854775807.0').major()") == "-1"
    assert shown("semver('18446744073709551615.9223372036854775807.0').minor()") == "9223372036854775807"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'%s'.format([['\x01\u200b\U000e0001é\v']])", r'"[\"\\x01\\u200b\\U000e0001é\\v\"]"'),
        (r"'%s'.format([x])", "error: error during formatting: could not convert argument to string"),
        (r"'%s'.format([[x]])", "error: error during formatting: could not convert argument to string"),
    ],
)
def test_format_quotes_what_cannot_be_printed_and_refuses_what_is_no_text(text: str, value: str) -> None:
    assert shown(text, x=b"\xff") == value


@pytest.mark.parametrize("text", ["'%s'.format([[optional.none()]])", "'%s'.format([{'a': [quantity('1')]}])"])
def test_format_looks_into_literal_lists_and_maps_before_anything_runs(text: str) -> None:
    assert "string clause can only be used on" in faults(text)[0]


def test_sorting_takes_what_is_not_a_number() -> None:
    assert shown("[double('NaN'), 1.0].sort().size() + [1, 2].sortBy(x, double('NaN')).size()") == "4"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x1p4", "16.0"), ("-0X.8P1", "-1.0"), ("+Inf", "inf"), ("1.", "1.0"), (".5e1", "5.0"), ("1e-400", "0.0")],
)
def test_doubles_are_read_as_go_reads_them(text: str, value: str) -> None:
    assert shown("double(x)", x=text) == value


@pytest.mark.parametrize("text", ["0x1", "0x1p", "0xp1", "1e999", "0x1p9999", "+nan", ".", "1 ", "١"])
def test_what_go_does_not_read_is_no_double(text: str) -> None:
    assert shown("double(x)", x=text).startswith("error: type conversion error")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("timestamp('2024-01-01T1:02:03Z').getHours()", "1"),
        ("timestamp('2024-01-01T01:02:03+00:60').getHours()", "0"),
        ("timestamp('9999-12-31T23:59:59Z').getFullYear('+01:00')", "10000"),
        ("timestamp('0001-01-01T00:00:00Z').getFullYear('-01:00')", "0"),
        ("timestamp('9999-12-31T23:59:59Z').getDayOfWeek('America/New_York')", "5"),
        ("timestamp('0001-01-01T00:00:00Z').getHours('Asia/Tokyo')", "9"),
        ("timestamp('2024-01-01T00:00:00Z').getDate('+25:00')", "2"),
        ("timestamp('2024-01-01T00:00:00Z').getHours('-00:30')", "23"),
        ("timestamp('2024-07-01T00:00:00Z').getHours('America/New_York')", "20"),
        ("string(timestamp('9999-12-31T23:59:59+01:00') + duration('1h'))", '"10000-01-01T00:59:59+01:00"'),
        ("duration('100000000.999999999s').getSeconds()", "100000001"),
        ("duration('-100000000.999999999s').getSeconds()", "-100000001"),
        ("duration('1.999999999s').getSeconds()", "1"),
        ("duration('0.3s') == duration('300ms') && duration('.5m') == duration('30s')", "true"),
    ],
)
def test_times_hold_up_to_their_limits(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize("zone", ["Nowhere/Land", "../etc", "+1", "1:x", ":30", "America"])
def test_what_is_no_time_zone_is_an_error(zone: str) -> None:
    assert shown("timestamp(0).getHours(x)", x=zone).startswith("error: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2].slice(0, 2) + [1, 2].slice(2, 2)", "[1, 2]"),
        ("[1, 2].slice(0, 3)", "error: cannot slice(0, 3), list is length 2"),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.2.3/8')", "true"),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", "false"),
        ("uint(x)", "error: unsigned integer overflow"),
        ("-9223372036854775808 % -1", "error: integer overflow"),
        ("-9223372036854775808 / -1", "error: integer overflow"),
        ("semver('1.2-rc', true)", "error: short version cannot contain PreRelease/Build meta data"),
    ],
)
def test_the_edge_is_inside_or_outside_as_upstream_has_it(text: str, value: str) -> None:
    assert shown(text, x=2.0**64) == value
