package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file of stored forms and the counts of the coverage anew")

// storing are the packages that make JSON for a column, by the functions that
// encode or decode it. Packages besides the store hand it over as text or bytes.
var storing = map[string][]string{
	"cloud/store": {"text", "parsed", "json.Unmarshal"},
	"cloud":       {"json.Marshal", "json.Unmarshal"}, "cloud/approval": {"json.Marshal", "json.Unmarshal"}, "cloud/app": {"json.Marshal", "json.Unmarshal"},
	"cloud/catalog": {"json.Unmarshal"}, "cloud/chat": {"json.Marshal", "json.Unmarshal"}, "cloud/device": {"json.Marshal"}, "cloud/live": {"json.Marshal", "json.Unmarshal"},
	"cloud/locker": {"json.Marshal", "json.Unmarshal"}, "cloud/order": {"json.Marshal", "json.Unmarshal"}, "cloud/push": {"json.Marshal"},
	"cloud/webhook": {"json.Marshal", "json.Unmarshal"}, "cloud/webhook/sender": {"json.Marshal", "json.Unmarshal"},
}

// What is stored as JSON has member names by tags, so that no rename of a field
// changes what older rows mean, and its forms stand in testdata/stored.golden: a
// difference is a change of what is stored, for which older rows need a reading
// or a migration (-update writes the file).
func TestStoredFormsStay(t *testing.T) {
	t.Parallel()
	packages := slices.Sorted(maps.Keys(storing))
	export := exported(t, packages)
	forms, untagged := map[string]string{}, map[string]bool{}
	for _, dir := range packages {
		for _, typ := range storedTypes(t, dir, storing[dir], export) {
			walkStored(typ, forms, untagged)
		}
	}
	require.Greater(t, len(forms), 40)
	require.Empty(t, slices.Sorted(maps.Keys(untagged)), "a stored member has no json tag: its name would follow that of the field")
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		fmt.Fprintf(&b, "%s\n%s\n", name, forms[name])
	}
	const golden = "testdata/stored.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// exported are the files of compiled packages and of all that they import.
func exported(t *testing.T, packages []string) map[string]string {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, p := range packages {
		args = append(args, module+p)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return files
}

// storedTypes are the types of what some functions are called with in a package.
func storedTypes(t *testing.T, dir string, functions []string, export map[string]string) (list []types.Type) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	open := func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, fs.ErrNotExist
		}
		return os.Open(export[path])
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", open), Error: func(error) {}} // files of other systems redeclare
	_, _ = conf.Check(module+dir, fset, files, info)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 && slices.Contains(functions, types.ExprString(call.Fun)) {
				typ := info.Types[call.Args[len(call.Args)-1]].Type
				require.NotNil(t, typ, "%s", fset.Position(call.Pos()))
				list = append(list, typ)
			}
			return true
		})
	}
	return list
}

// walkStored notes the form of every struct that is reached from a type.
func walkStored(typ types.Type, forms map[string]string, untagged map[string]bool) {
	switch x := types.Unalias(typ).(type) {
	case *types.Pointer:
		walkStored(x.Elem(), forms, untagged)
		return
	case *types.Slice:
		walkStored(x.Elem(), forms, untagged)
		return
	case *types.Array:
		walkStored(x.Elem(), forms, untagged)
		return
	case *types.Map:
		walkStored(x.Elem(), forms, untagged)
		return
	case *types.Named:
		if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(x), true, nil, "MarshalJSON"); m != nil {
			return // its form is its own, with tests of its own
		}
		if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(x), true, nil, "MarshalText"); m != nil {
			return
		}
	}
	name := strings.ReplaceAll(typ.String(), module, "")
	s, ok := typ.Underlying().(*types.Struct)
	if !ok {
		if _, named := typ.(*types.Named); named {
			if _, basic := typ.Underlying().(*types.Basic); !basic {
				walkStored(typ.Underlying(), forms, untagged)
			}
		}
		return
	}
	if strings.HasPrefix(name, "struct{") {
		name = "struct"
		for f := range s.Fields() {
			name += " " + f.Name()
		}
	}
	if _, known := forms[name]; known {
		return
	}
	forms[name] = ""
	var form strings.Builder
	for i := range s.NumFields() {
		f := s.Field(i)
		tag, tagged := reflect.StructTag(s.Tag(i)).Lookup("json")
		switch {
		case tag == "-", !f.Exported() && !f.Embedded():
			continue
		case !tagged && f.Embedded():
			tag = "(embedded)"
		case !tagged || strings.HasPrefix(tag, ","):
			untagged[name+"."+f.Name()] = true
		}
		fmt.Fprintf(&form, "\t%s %s\n", tag, formOf(f.Type()))
		walkStored(f.Type(), forms, untagged)
	}
	forms[name] = form.String()
}

// formOf is a member's type as far as it says what is stored: names of structs,
// and what lies under all others.
func formOf(typ types.Type) string {
	switch x := types.Unalias(typ).(type) {
	case *types.Pointer:
		return "*" + formOf(x.Elem())
	case *types.Slice:
		return "[]" + formOf(x.Elem())
	case *types.Map:
		return "map[" + formOf(x.Key()) + "]" + formOf(x.Elem())
	case *types.Named:
		if _, ok := x.Underlying().(*types.Struct); !ok {
			return formOf(x.Underlying())
		}
	}
	return strings.ReplaceAll(typ.String(), module, "")
}
