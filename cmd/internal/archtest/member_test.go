package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// source is a package as go list says it.
type source struct {
	ImportPath, Export, Dir string
	GoFiles                 []string
}

// program is the cloud's code with its types.
type program struct {
	t     *testing.T
	fset  *token.FileSet
	all   map[string]source
	done  map[string]*types.Package
	other types.Importer

	inputs, outputs []types.Type            // of the operations
	read            map[*types.Var]bool     // fields whose value some code takes
	written         map[*types.Var][]string // files that put something into a field
}

// loadCloud type-checks the cloud from its source, and what it needs of others from
// what the compiler exported.
func loadCloud(t *testing.T) *program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles", module+"cloud/api", module+"cloud/server")
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	require.NoError(t, err)
	p := &program{t: t, fset: token.NewFileSet(), all: map[string]source{}, done: map[string]*types.Package{}, read: map[*types.Var]bool{}, written: map[*types.Var][]string{}}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var one source
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		p.all[one.ImportPath] = one
	}
	p.other = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.all[path].Export) })
	for path := range p.all {
		if strings.HasPrefix(path, module) {
			_, err := p.Import(path)
			require.NoError(t, err)
		}
	}
	return p
}

// Import is the importer of the module's own packages.
func (p *program) Import(path string) (*types.Package, error) {
	if !strings.HasPrefix(path, module) {
		return p.other.Import(path)
	}
	if done := p.done[path]; done != nil {
		return done, nil
	}
	var files []*ast.File
	for _, name := range p.all[path].GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(p.all[path].Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}}
	done, err := (&types.Config{Importer: p}).Check(path, p.fset, files, info)
	p.done[path] = done
	for _, f := range files {
		p.look(info, f)
	}
	return done, err
}

// look takes down the operations that a file defines and the fields that it reads and writes.
func (p *program) look(info *types.Info, f *ast.File) {
	written := map[ast.Expr]bool{}
	write := func(x ast.Expr) {
		var field types.Object
		switch x := x.(type) {
		case *ast.SelectorExpr:
			if s := info.Selections[x]; s != nil && s.Kind() == types.FieldVal {
				field = s.Obj()
			}
		case *ast.Ident: // of a literal
			field = info.Uses[x]
		}
		if v, ok := field.(*types.Var); ok && v.IsField() {
			p.written[v.Origin()] = append(p.written[v.Origin()], p.fset.Position(x.Pos()).Filename)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			write(n.Key)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				write(n.X)
			}
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				write(x)
			}
			if n.Tok == token.ASSIGN {
				for _, x := range n.Lhs {
					written[x] = true
				}
			}
		case *ast.SelectorExpr:
			if s := info.Selections[n]; s != nil && s.Kind() == types.FieldVal && !written[n] {
				p.read[s.Obj().(*types.Var).Origin()] = true
			}
		case *ast.CallExpr:
			p.call(info, n)
		}
		return true
	})
}

func (p *program) call(info *types.Info, n *ast.CallExpr) {
	if info.Types[n.Fun].IsType() { // a conversion takes every field along
		if s, ok := info.Types[n.Args[0]].Type.Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				p.read[f.Origin()] = true
			}
		}
		return
	}
	s, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Define" || info.Uses[s.Sel] == nil || info.Uses[s.Sel].Pkg().Path() != module+"cloud/catalog" {
		return
	}
	run := info.Types[n.Args[1]].Type.Underlying().(*types.Signature)
	p.inputs, p.outputs = append(p.inputs, run.Params().At(2).Type()), append(p.outputs, run.Results().At(0).Type())
}

// fields are those that a type has in JSON or an address, at any depth, with the
// name of the type that they are of.
func fields(t types.Type, seen map[types.Type]bool, found func(owner string, f *types.Var)) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		fields(u.Elem(), seen, found)
	case *types.Slice:
		fields(u.Elem(), seen, found)
	case *types.Map:
		fields(u.Elem(), seen, found)
	case *types.Struct:
		for i := range u.NumFields() {
			f, tag := u.Field(i), reflect.StructTag(u.Tag(i))
			given := tag.Get("path")+tag.Get("query")+tag.Get("header") != "" || tag.Get("json") != "" && tag.Get("json") != "-"
			if given && f.Exported() && f.Pkg() != nil && strings.HasPrefix(f.Pkg().Path(), module) {
				found(types.TypeString(t, (*types.Package).Name), f.Origin())
			}
			fields(f.Type(), seen, found)
		}
	}
}

// A member that a caller may give and no code takes is left out without a word. Those
// that are kept whole and shown again have their effect in answers.
func TestEveryMemberOfAnInputIsRead(t *testing.T) {
	ring.SkipUnlessCheck(t, "it types the whole cloud")
	t.Parallel()
	p := loadCloud(t)
	require.Greater(t, len(p.inputs), 150, "operations")
	shown := map[*types.Var]bool{}
	seen := map[types.Type]bool{}
	for _, out := range p.outputs {
		fields(out, seen, func(_ string, f *types.Var) { shown[f] = true })
	}
	var dead []string
	members := 0
	seen = map[types.Type]bool{}
	for _, in := range p.inputs {
		fields(in, seen, func(owner string, f *types.Var) {
			if members++; !p.read[f] && !shown[f] {
				dead = append(dead, owner+"."+f.Name())
			}
		})
	}
	require.Greater(t, members, 300)
	slices.Sort(dead)
	require.Empty(t, dead, "members of inputs that no code takes: let them have an effect, or refuse them")
}
