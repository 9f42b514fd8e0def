package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Kinds of change.
const (
	negateCondition = "condition negated"
	moveBoundary    = "boundary moved"
	swapLogic       = "and/or swapped"
	removeReturn    = "return removed"
	removeStatement = "statement removed"
	offByOne        = "constant off by one"
	ignoreError     = "error ignored"
	swapSign        = "plus/minus swapped"
)

// operators are the changes of one operator by another.
var operators = map[token.Token]struct {
	to   token.Token
	kind string
}{
	token.LSS: {token.LEQ, moveBoundary}, token.LEQ: {token.LSS, moveBoundary},
	token.GTR: {token.GEQ, moveBoundary}, token.GEQ: {token.GTR, moveBoundary},
	token.LAND: {token.LOR, swapLogic}, token.LOR: {token.LAND, swapLogic},
	token.ADD: {token.SUB, swapSign}, token.SUB: {token.ADD, swapSign},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, swapSign}, token.SUB_ASSIGN: {token.ADD_ASSIGN, swapSign},
	token.INC: {token.DEC, swapSign}, token.DEC: {token.INC, swapSign},
}

// collector finds the sites of one file.
type collector struct {
	set   *token.FileSet
	src   []byte
	sites []site
}

func (c *collector) collect(file *ast.File) {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		ast.Inspect(d, c.visit)
	}
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		c.condition(n.Cond)
		c.earlyReturn(n)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, s := range n.Body.List {
				for _, e := range s.(*ast.CaseClause).List {
					c.condition(e)
				}
			}
		}
	case *ast.CaseClause:
		c.statements(n.Body)
	case *ast.CommClause:
		c.statements(n.Body)
	case *ast.BlockStmt:
		c.statements(n.List)
	case *ast.BinaryExpr:
		c.operator(n.OpPos, n.Op)
	case *ast.AssignStmt:
		c.operator(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		c.operator(n.TokPos, n.Tok)
	case *ast.BasicLit:
		c.constant(n)
	case *ast.ArrayType: // a length is no figure of a rule
		return n.Len == nil
	case *ast.CallExpr:
		return !isLog(n)
	}
	return true
}

func (c *collector) condition(e ast.Expr) {
	if checksError(e) {
		c.change(ignoreError, e.Pos(), e.End(), "false && "+c.text(e))
		return
	}
	c.change(negateCondition, e.Pos(), e.End(), "!("+c.text(e)+")")
}

// earlyReturn switches off an if that does nothing but return. The condition is
// still read, so that what only it uses stays in use.
func (c *collector) earlyReturn(n *ast.IfStmt) {
	if len(n.Body.List) != 1 || checksError(n.Cond) {
		return
	}
	if _, ok := n.Body.List[0].(*ast.ReturnStmt); ok {
		c.change(removeReturn, n.Cond.Pos(), n.Cond.End(), "false && ("+c.text(n.Cond)+")")
	}
}

func (c *collector) statements(list []ast.Stmt) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.ReturnStmt:
			if i > 0 && i == len(list)-1 {
				c.change(removeReturn, s.Pos(), s.End(), "")
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || !isLog(call) {
				c.change(removeStatement, s.Pos(), s.End(), "")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !isBlank(s.Lhs) {
				c.change(removeStatement, s.Pos(), s.End(), "")
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.BranchStmt:
			c.change(removeStatement, s.Pos(), s.End(), "")
		}
	}
}

func (c *collector) operator(pos token.Pos, op token.Token) {
	if o, ok := operators[op]; ok {
		c.change(o.kind, pos, pos+token.Pos(len(op.String())), o.to.String())
	}
}

func (c *collector) constant(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		c.change(offByOne, n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	}
}

// change notes a site with the line before and after.
func (c *collector) change(kind string, from, to token.Pos, with string) {
	a, b := c.set.Position(from), c.set.Position(to)
	start := a.Offset - (a.Column - 1)
	end := b.Offset + max(0, strings.IndexByte(string(c.src[b.Offset:])+"\n", '\n'))
	line := func(text string) string {
		first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
		if more {
			first += " ..."
		}
		return first
	}
	c.sites = append(c.sites, site{Line: a.Line, Kind: kind, From: a.Offset, To: b.Offset, With: with,
		Before: line(string(c.src[start:end])), After: line(string(c.src[start:a.Offset]) + with + string(c.src[b.Offset:end]))})
}

func (c *collector) text(n ast.Node) string {
	return string(c.src[c.set.Position(n.Pos()).Offset:c.set.Position(n.End()).Offset])
}

// checksError reports whether a condition is just err != nil.
func checksError(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	x, ok := b.X.(*ast.Ident)
	y, ok2 := b.Y.(*ast.Ident)
	return ok && ok2 && y.Name == "nil" && strings.HasPrefix(strings.ToLower(x.Name), "err")
}

// isLog reports whether a call only writes to a log: tests do not read logs.
func isLog(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"}, s.Sel.Name) {
		return false
	}
	name := ""
	switch x := s.X.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.Contains(strings.ToLower(name), "log")
}

func isBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { x, ok := e.(*ast.Ident); return !ok || x.Name != "_" })
}
