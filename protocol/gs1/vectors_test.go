package gs1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/gs1"
)

// Test vectors that GS1 publishes with its Syntax Engine (scandata.c and dl.c,
// github.com/gs1/gs1-syntax-engine): what a scanner sends, and the elements in it.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	const item = "011231231231233310ABC123" + gs + "99TESTING"
	of := elements("01", "12312312312333", "10", "ABC123", "99", "TESTING")
	for label, want := range map[string][]gs1.Element{
		"]Q3" + item: of, "]d2" + item: of, "]e0" + item: of, "]C1" + item: of,
		"]e0" + item + gs + "98XYZ": append(elements(), append(of[:3:3], elements("98", "XYZ")...)...),
		"]e0011231231231233310ABC123" + gs + "1199122598TESTING" + gs + "97XYZ":   elements("01", "12312312312333", "10", "ABC123", "11", "991225", "98", "TESTING", "97", "XYZ"),
		"]e0011231231231233310ABC123" + gs + "1199122598COMPOSITE" + gs + "97XYZ": elements("01", "12312312312333", "10", "ABC123", "11", "991225", "98", "COMPOSITE", "97", "XYZ"),
		"]e0012401234567890599COMPOSITE" + gs + "98XYZ":                           elements("01", "24012345678905", "99", "COMPOSITE", "98", "XYZ"),
		"]e0011501234567890799COMPOSITE" + gs + "98XYZ":                           elements("01", "15012345678907", "99", "COMPOSITE", "98", "XYZ"),
		"]E02112345678900": elements("01", "02112345678900"),
		"]E00416000336108": elements("01", "00416000336108"),
		"]Q1https://example.com/01/12312312312333?99=TEST":                              elements("01", "12312312312333", "99", "TEST"),
		"]Q1HTTPS://example.com/01/12312312312333?99=TEST":                              elements("01", "12312312312333", "99", "TEST"),
		"]d1https://example.com/01/12312312312333?99=TEST":                              elements("01", "12312312312333", "99", "TEST"),
		"https://id.gs1.org/00/952012345678912345":                                      elements("00", "952012345678912345"),
		"https://id.gs1.org/00/952012345678912345?02=09520123456788&37=25&10=ABC123":    elements("00", "952012345678912345", "02", "09520123456788", "37", "25", "10", "ABC123"),
		"https://id.gs1.org/414/9520123456788":                                          elements("414", "9520123456788"),
		"https://id.gs1.org/414/9520123456788/254/32a%2Fb":                              elements("414", "9520123456788", "254", "32a/b"),
		"https://id.gs1.org/01/09520123456788/235/XYZ?10=ABC123":                        elements("01", "09520123456788", "235", "XYZ", "10", "ABC123"),
		"https://example.com/01/12312312312326/21/abc123":                               elements("01", "12312312312326", "21", "abc123"),
		"https://example.com/01/12312312312326/22/ABC/10/DEF/21/GHI?95=INT":             elements("01", "12312312312326", "22", "ABC", "10", "DEF", "21", "GHI", "95", "INT"),
		"https://example.com/01/12312312312333/10/ABC%2B123?99=XYZ%2BQWERTY":            elements("01", "12312312312333", "10", "ABC+123", "99", "XYZ+QWERTY"),
		"https://example.com/8017/795260646688514634?99=000001&253=9526064000028000001": elements("8017", "795260646688514634", "99", "000001", "253", "9526064000028000001"),
	} {
		s, err := gs1.Read([]byte(label))
		require.NoError(t, err, label)
		require.Equal(t, want, s.Elements, label)
		require.Equal(t, gs1.Exact, s.Certainty, label)
	}
	for _, label := range []string{
		"]E012345678901234", "]E01234ABC890123", "]E02112345678901",
		"https://example.com/01/09520123456788/89/ABC123?99=XYZ", "https://example.com/01/09520123456788?99=XYZ&89=ABC123",
	} {
		s, err := gs1.Read([]byte(label))
		require.True(t, err != nil || len(s.Elements) == 0, "%s: %v", label, s.Elements)
	}
	// What the engine refuses, and scanners and printers send all the same with one meaning: twelve
	// digits of a UPC-A, a qualifier in the query, a value that is repeated, a scheme in mixed letters
	// (RFC 3986 3.1).
	for label, item := range map[string]string{
		"]E0123456789012": "00123456789012", "https://example.com/01/09520123456788?10=ABC123": "09520123456788", "]Q1HtTps://example.com/01/12312312312333?99=TEST": "12312312312333",
		"https://id.gs1.org/01/09520123456788/10/ABC123?99=XYZ789&01=09520123456788": "09520123456788", "https://id.gs1.org/01/09520123456788/10/ABC123?99=XYZ789&99=XYZ789": "09520123456788",
	} {
		s, err := gs1.Read([]byte(label))
		require.NoError(t, err, label)
		require.Equal(t, gs1.Element{AI: "01", Value: item}, s.Elements[0], label)
	}
}
