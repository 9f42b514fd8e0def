package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refused are words that no text for readers has: a subject is a noun, and an
// endpoint gets events.
var refused = regexp.MustCompile(`(?i)\b(hook|hears|told|nobody|somebody|whoever)\b`)

var (
	code    = regexp.MustCompile("`[^`\n]+`")
	markup  = regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>|\{\{.*?\}\}|<!--.*?-->|<[^>]*>`)
	setting = regexp.MustCompile(`#.*`)
)

// findings are the refused words of a text with their lines; keep is what of a
// text is read by people.
func findings(text string, keep func(string) string) (out []string) {
	for n, line := range strings.Split(keep(text), "\n") {
		for _, w := range refused.FindAllString(line, -1) {
			out = append(out, strconv.Itoa(n+1)+": "+w)
		}
	}
	return out
}

// blank replaces matches by their line breaks, so that lines keep their numbers.
func blank(r *regexp.Regexp) func(string) string {
	return func(text string) string {
		return r.ReplaceAllStringFunc(text, func(m string) string { return strings.Repeat("\n", strings.Count(m, "\n")) + " " })
	}
}

func comments(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = setting.FindString(l)
	}
	return strings.Join(lines, "\n")
}

// sentences are the string literals of a Go file that have a space: the texts of
// pages and messages, not their keys.
func sentences(t *testing.T, text string) string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	lines := make([]string, strings.Count(text, "\n")+1)
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Contains(l.Value, " ") {
			lines[fset.Position(l.Pos()).Line-1] += " " + strings.ReplaceAll(l.Value, "\n", " ")
		}
		return true
	})
	return strings.Join(lines, "\n")
}

func TestTextsHavePlainWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"2: told"}, findings("a `hook`\nis told", blank(code)))
	require.Equal(t, []string{"2: Nobody"}, findings("<p class=\"told\">\nNobody {{.T \"x.nobody\"}}</p>", blank(markup)))
	require.Equal(t, []string{"2: hears"}, findings("hook: 1\na: 2 # hears", comments))
	require.Equal(t, []string{"2: somebody"}, findings(sentences(t, "package x\nvar a = []string{\"x.nobody\", \"for somebody\"} // told"), strings.Clone))

	ofGo := func(text string) string { return sentences(t, text) }
	for _, group := range []struct {
		patterns []string
		keep     func(string) string
		least    int // files
	}{
		{[]string{"*.md", "docs/*.md", "docs/interface/*.md"}, blank(code), 14},
		{[]string{"configs/*.yaml"}, comments, 5},
		{[]string{"cloud/page/templates/*.html", "edge/kiosk/page/*.html", "firmware-sim/page/files/*.html"}, blank(markup), 20},
		{[]string{"cloud/locale/*.go", "edge/kiosk/text.go", "firmware-sim/page/text.go"}, ofGo, 10},
	} {
		seen := 0
		for _, p := range group.patterns {
			files, err := filepath.Glob(filepath.Join("../../..", p))
			require.NoError(t, err)
			for _, f := range files {
				if strings.HasSuffix(f, "_test.go") {
					continue
				}
				raw, err := os.ReadFile(f)
				require.NoError(t, err)
				seen++
				for _, x := range findings(string(raw), group.keep) {
					t.Errorf("%s:%s", strings.TrimPrefix(f, "../../../"), x)
				}
			}
		}
		require.GreaterOrEqual(t, seen, group.least, "%s", group.patterns)
	}
}

// stored are texts with names that databases and documents of others have.
var stored = regexp.MustCompile(`\b(business_id|timeline|nobody there)\b`)

// Texts of programs are those that people read: messages, help, descriptions of members
// and events, errors and log lines. Tests and their helpers talk to us alone.
func TestTextsOfProgramsHavePlainWords(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, side := range []string{"cloud", "edge", "protocol", "firmware-sim", "cmd"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../../..", side), func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), "testdata") || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen++
			for n, line := range strings.Split(sentences(t, string(raw)), "\n") {
				if w := refused.FindString(line); w != "" && !stored.MatchString(line) {
					t.Errorf("%s:%d: %s", strings.TrimPrefix(path, "../../../"), n+1, w)
				}
			}
			return nil
		}))
	}
	require.Greater(t, seen, 500, "files")
}

// bareNames are names that no function has outside tests: verbs without their
// object, and names of former releases.
var bareNames = regexp.MustCompile(`^(tell|told|keep|act|sit|seat|heard|hear|did|do|take|give|come|say|said|ask|make|shown|encoded|carried|judge|verdict|entrust|callOff|drove|redriven|plain|lacking|Both|Covers|settleThird|hook[a-z].*)$`)

func TestFunctionsNameTheirObject(t *testing.T) {
	t.Parallel()
	require.True(t, bareNames.MatchString("take"))
	require.False(t, bareNames.MatchString("takeRequests"))
	seen := 0
	for _, side := range []string{"cloud", "edge", "protocol", "firmware-sim", "cmd"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../../..", side), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok {
					seen++
					if bareNames.MatchString(fn.Name.Name) {
						t.Errorf("%s: the function %s needs its object in its name", strings.TrimPrefix(path, "../../../"), fn.Name.Name)
					}
				}
			}
			return nil
		}))
	}
	require.Greater(t, seen, 3000, "functions")
}

// refusedNames are words that no name of a test has. Folders whose names are not changed yet are left out.
var (
	refusedNames = regexp.MustCompile(`(Hears|Told|Nobody|Somebody|Whoever)([A-Z0-9_]|$)`)
	otherNames   = regexp.MustCompile(`^(cmd/e2e|cmd/internal/truth|edge/locker|cloud/page)/`)
)

func TestNamesOfTestsHavePlainWords(t *testing.T) {
	t.Parallel()
	require.True(t, refusedNames.MatchString("TestDutyIsTold"))
	require.False(t, refusedNames.MatchString("TestTolderances"))
	seen := 0
	for _, side := range []string{"cloud", "edge", "protocol", "firmware-sim", "cmd"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../../..", side), func(path string, d os.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("../../..")+string(filepath.Separator)))
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || otherNames.MatchString(name) {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
					seen++
					if refusedNames.MatchString(fn.Name.Name) {
						t.Errorf("%s: %s", name, fn.Name.Name)
					}
				}
			}
			return nil
		}))
	}
	require.Greater(t, seen, 800, "tests")
}
