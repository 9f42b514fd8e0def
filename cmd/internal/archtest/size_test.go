package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxMethods is how many methods one type has at most (STYLE 2.1).
const maxMethods = 40

// A type that one person cannot hold in mind is split by noun.
func TestTypesAreSmall(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	count := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, x := range f.Decls {
			if fn, ok := x.(*ast.FuncDecl); ok && fn.Recv != nil {
				count[filepath.ToSlash(dir)+"."+receiverName(fn.Recv.List[0].Type)]++
			}
		}
		return err
	}))
	require.Contains(t, count, "cloud/order.Decision")
	for name, n := range count {
		require.LessOrEqual(t, n, maxMethods, "%s has %d methods: what belongs to one operation is a function, what is a noun of its own a type", name, n)
	}
}

// receiverName is the type of a receiver without star and parameters.
func receiverName(x ast.Expr) string {
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func TestReceiverName(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "", "package x\nfunc (a A) f() {}\nfunc (a *B) f() {}\nfunc (a *C[T]) f() {}\nfunc (a D[T, U]) f() {}", 0)
	require.NoError(t, err)
	var got []string
	for _, d := range f.Decls {
		got = append(got, receiverName(d.(*ast.FuncDecl).Recv.List[0].Type))
	}
	require.True(t, slices.Equal([]string{"A", "B", "C", "D"}, got), got)
}
