package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// goPackage is what `go list` says of a package.
type goPackage struct {
	Dir          string
	ImportPath   string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Module       struct{ Path, Dir string }
}

// tester is the import path of the package whose tests judge p: p itself, or its
// parent when p has none, as the packages under cloud/order.
func (p goPackage) tester() string {
	if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
		return path.Dir(p.ImportPath)
	}
	return p.ImportPath
}

func listPackages(ctx context.Context, dir string, patterns []string) (out []goPackage, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Module", "--"}, patterns...)...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	for d := json.NewDecoder(strings.NewReader(string(raw))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		out = append(out, p)
	}
}

// site is one change of one place: bytes [From, To) of File become With.
type site struct {
	Package string `json:"package"` // import path
	File    string `json:"file"`    // slash path from the module's folder
	Line    int    `json:"line"`
	Kind    string `json:"kind"`
	Before  string `json:"before"` // the line, or the first of the change
	After   string `json:"after"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	With    string `json:"with"`
	Sum     string `json:"sum"` // of the file's bytes

	pkg  goPackage
	path string
}

// id names a site in the file of verdicts.
func (s site) id() string { return fmt.Sprintf("%s:%d-%d:%s:%s", s.File, s.From, s.To, s.With, s.Sum) }

// mutant is the file's source with the change.
func (s site) mutant() ([]byte, error) {
	src, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	if sumOf(src) != s.Sum {
		return nil, fmt.Errorf("%s changed during the run", s.File)
	}
	return slices.Concat(src[:s.From], []byte(s.With), src[s.To:]), nil
}

func sumOf(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:8])
}

// findSites finds every change of a package's own files, generated ones left out.
func findSites(p goPackage) (out []site, err error) {
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(file) {
			continue
		}
		rel, err := filepath.Rel(p.Module.Dir, path)
		if err != nil {
			return nil, err
		}
		c := &collector{set: set, src: src}
		c.collect(file)
		for _, s := range c.sites {
			s.Package, s.File, s.Sum, s.pkg, s.path = p.ImportPath, filepath.ToSlash(rel), sumOf(src), p, path
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b site) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.With, b.With))
	})
	return out, nil
}

// shuffle is the order in which the sites of a seed are tried.
func shuffle(sites []site, seed uint64) []site {
	out := slices.Clone(sites)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
