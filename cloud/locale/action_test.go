package locale

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every action that a line of the audit trail can have is in words: those that sources
// give to a parameter, a variable or a member called action.
func TestEveryAuditedActionHasWords(t *testing.T) {
	t.Parallel()
	packages := map[string][]*ast.File{}
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "storetest/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../"+name, nil, parser.SkipObjectResolution)
		packages[path.Dir(name)] = append(packages[path.Dir(name)], f)
		return err
	}))
	found := map[string]string{} // the package that writes it, by action
	for dir, files := range packages {
		if !slices.ContainsFunc(files, writesAudits) {
			continue
		}
		for _, f := range files {
			for _, action := range actionsOf(f, actionParameters(files)) {
				switch dir {
				case "approval": // which puts it before
					action = "approval." + action
				case "order": // what is done with a proof; its lines have names of operations
					continue
				}
				found[action] = dir
			}
		}
	}
	require.Greater(t, len(found), 60)
	for _, action := range []string{"logged_in", "invitation_email_wrong", "agent_reuse_detected", "driver_duty_on", "business_removed", "foreign_topic", "doors_opened"} {
		require.Contains(t, found, action, "the search finds it")
	}
	var missing []string
	for action, dir := range found {
		if Action(German, action) == "" {
			missing = append(missing, dir+": "+action)
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing)
	require.Equal(t, "Auftrag: Fahrer zugewiesen", Action(German, "order_driver assigned"))
	require.Equal(t, "Service changed: Labels", Action(English, "feature_label"))
	require.Empty(t, Action(English, "never_done"))
	for done, want := range map[string]string{"site_made": "Standort: hinzugefügt", "site_changed": "Standort: geändert", "cabinet_profile_removed": "Konfigurationsprofil: entfernt"} {
		require.Equal(t, want, Action(German, done), "of a family")
	}
	require.Equal(t, "Customer created", Action(English, "customer_made"), "words of its own come first")
	for _, none := range []string{"skill_made", "site_forgotten", "_made", "made"} {
		require.Empty(t, Action(German, none))
	}
}

// writesAudits reports whether a file names the type of audit lines.
func writesAudits(f *ast.File) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		yes = yes || ok && s.Sel.Name == "Audit" && isIdent(s.X, "cloud")
		return !yes
	})
	return yes
}

func isIdent(x ast.Expr, name string) bool { i, ok := x.(*ast.Ident); return ok && i.Name == name }

// actionParameters are the places of parameters called action, by the function's name.
func actionParameters(files []*ast.File) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			at := 0
			for _, p := range fn.Type.Params.List {
				for _, name := range p.Names {
					if name.Name == "action" && isIdent(p.Type, "string") {
						out[fn.Name.Name] = at
					}
					at++
				}
			}
		}
	}
	return out
}

// actionsOf are the texts that a file gives to what is called action.
func actionsOf(f *ast.File, parameters map[string]int) (out []string) {
	add := func(x ast.Expr) {
		if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && s != "" {
				out = append(out, s)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); n.Type != nil && (!ok || s.Sel.Name != "Audit") {
				break
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && isIdent(kv.Key, "Action") {
					add(kv.Value)
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				s, ok := to.(*ast.SelectorExpr)
				if len(n.Rhs) == len(n.Lhs) && (isIdent(to, "action") || ok && s.Sel.Name == "Action") {
					add(n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			name := ""
			switch fn := n.Fun.(type) {
			case *ast.Ident:
				name = fn.Name
			case *ast.SelectorExpr:
				name = fn.Sel.Name
			}
			if at, ok := parameters[name]; ok && at < len(n.Args) {
				add(n.Args[at])
			}
		}
		return true
	})
	return out
}
