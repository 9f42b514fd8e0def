// Command conformance runs the tests in which suites, validators and clients of other people
// judge the product, and writes what they found as a table: docs/conformance.md.
//
//	go run ./cmd/internal/conformance -out docs/conformance.md
//
// The tests record their verdicts (internal/verdict). The command fails, and writes nothing,
// where a test fails, is skipped, or records nothing: what the table says was seen.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// judges are the tests that record verdicts, by package: a pattern of their names.
var judges = [][2]string{
	{"./cloud/mcp", "^TestOfficial"},
	{"./cloud/server", "^Test(OfficialSuite|OfficialClientsOfTheRealServers|AsyncAPIBeforeItsParser|PrometheusTakesTheRules|NewmanPlaysTheCollection)"},
	{"./cloud/page", "^Test(InterfaceBeforeOtherPeoplesTools|.*InARealBrowser)"},
	{"./cloud/api", "^TestGeneratedPagesInARealBrowser$"},
	{"./cloud/projection", "^Test(EPCISIsValidByItsOfficialSchema|AmazonIsValidByItsDescription|OneRecordCodesAreListed|OTLPIsReadByItsOwnDecoder)$"},
	{"./cloud/webhook/sender", "^TestJavaScriptLibrariesReadUs$"},
	{"./cmd/e2e", "^Test(Couriers|People|Staff|The).*ScreenOfACabinet"},
}

func main() {
	out := flag.String("out", "", "file to write, empty: print")
	flag.Parse()
	if err := run(*out, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(file string, stdout, stderr io.Writer) error {
	versions, err := readVersions(".")
	if err != nil {
		return err
	}
	var found []judged
	for _, j := range judges {
		fmt.Fprintln(stderr, j[0])
		cmd := exec.Command("go", "test", "-json", "-count", "1", "-timeout", "60m", "-parallel", "4", "-run", j[1], j[0]) // most of them wait for real time
		cmd.Env = append(os.Environ(), ring.Env+"=full", ring.EnvBrowsers+"=require", ring.EnvTools+"=1")
		cmd.Stderr = stderr
		out, err := cmd.Output()
		list, fault := read(bytes.NewReader(out))
		if fault == nil && err != nil {
			fault = err
		}
		if fault == nil && len(list) == 0 {
			fault = errors.New("no test recorded a verdict")
		}
		if fault != nil {
			return fmt.Errorf("%s %s: %w", j[0], j[1], fault)
		}
		found = append(found, list...)
	}
	table := write(found, versions)
	if file == "" {
		_, err = stdout.Write(table)
		return err
	}
	return os.WriteFile(file, table, 0o644)
}

// judged is a verdict and the test that recorded it.
type judged struct {
	verdict.Verdict
	test string // folder: name
}

// read collects the verdicts of what `go test -json` printed. Error: a test that failed or was
// skipped, by its name.
func read(r io.Reader) (out []judged, err error) {
	var said strings.Builder
	for lines := json.NewDecoder(r); ; {
		var e struct{ Action, Package, Test, Key, Value, Output string }
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		top, _, _ := strings.Cut(e.Test, "/")
		switch e.Action {
		case "output":
			said.WriteString(e.Output)
		case "fail", "skip":
			if e.Test != "" || e.Action == "fail" {
				text := said.String()
				return nil, fmt.Errorf("%s: %s\n%s", e.Test, e.Action, text[max(0, len(text)-4000):])
			}
		case "attr":
			if e.Key != verdict.Attr {
				continue
			}
			j := judged{test: strings.TrimPrefix(e.Package, "github.com/postern-io/postern/") + ": " + top}
			if err := json.Unmarshal([]byte(e.Value), &j.Verdict); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", e.Test, e.Value, err)
			}
			out = append(out, j)
		}
	}
}

// write is the table: a row of each suite and subject, whose verdicts are added up.
func write(found []judged, versions map[string]string) []byte {
	type row struct {
		passed, all int
		tests       map[string]bool
	}
	rows := map[[2]string]row{}
	for _, j := range found {
		key := [2]string{j.Suite, j.Subject}
		r, ok := rows[key]
		if !ok {
			r.tests = map[string]bool{}
		}
		r.passed, r.all = r.passed+j.Passed, r.all+j.All
		r.tests[j.test] = true
		rows[key] = r
	}
	var b bytes.Buffer
	b.WriteString(`# Conformance

What suites, validators and clients of other people find when they judge the product. ` + "`make conformance`" + ` runs them and writes this table; each row adds up what its tests recorded.

| Suite | Version | Subject | Passed | Of | Test |
|---|---|---|---:|---:|---|
`)
	for _, key := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		r := rows[key]
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", key[0], versions[key[0]], key[1], r.passed, r.all, strings.Join(slices.Sorted(maps.Keys(r.tests)), "<br>"))
	}
	return b.Bytes()
}

// readVersions gives the versions of the Go modules and npm packages that a folder's files name.
func readVersions(dir string) (map[string]string, error) {
	out := map[string]string{}
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse("go.mod", raw, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range mod.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.Name() != "package.json":
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var list struct{ Dependencies map[string]string }
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		maps.Copy(out, list.Dependencies)
		return nil
	})
	return out, err
}
