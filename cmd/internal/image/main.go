// Command image makes the container image of the cloud without a container daemon and
// without root: an OCI layout with one image for each platform, FROM scratch. In an image
// are the program, certificates of authorities, the list of its modules (SPDX), and the
// folders that it writes to. The same commit gives the same digest.
//
//	go run ./cmd/internal/image -o dist/image -release v1.2.3
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	user      = 65532 // as others call it nonroot
	home      = "var/lib/postern"
	program   = "usr/bin/cloud"
	authority = "etc/ssl/certs/ca-certificates.crt"
	modules   = "usr/share/postern/cloud.spdx.json"
	// usualListen has HTTP listen on all interfaces of the container where settings say
	// nothing: its loopback reaches no caller.
	usualListen = "POSTERN_USUAL_LISTEN=:8080"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		stop()
		os.Exit(1)
	}
}

// run writes the layout, for each platform the list of modules beside it, and prints the
// digest.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("o", "dist/image", "folder of the OCI layout; it must not exist")
	release := flags.String("release", "dev", "release of the program")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "systems, by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(*out); err == nil {
		return fmt.Errorf("%s is there already; remove it or name another folder", *out)
	}
	dir, err := os.MkdirTemp("", "postern-image")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for platform := range strings.SplitSeq(*platforms, ",") {
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-"))
		if err := build(ctx, *p, *release, file); err != nil {
			return err
		}
		img, err := imageOf(file, *release, *p)
		if err != nil {
			return fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: p}})
	}
	if _, err := layout.Write(*out, index); err != nil {
		return fmt.Errorf("write %s: %w", *out, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s %s\n", digest, *out)
	return err
}

// build builds the cloud as a release does, with the time zones that an empty system does
// not have.
func build(ctx context.Context, p v1.Platform, release, file string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata", "-ldflags", "-s -w -X github.com/postern-io/postern/cmd/internal/cli.release=[[postern-release:"+release+"]]", "-o", file, "github.com/postern-io/postern/cmd/cloud")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w: %s", p, err, out)
	}
	return nil
}

// imageOf is the image around a built program.
func imageOf(file, release string, p v1.Platform) (v1.Image, error) {
	layer, err := layerOf(file, release)
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, l)
	if err != nil {
		return nil, err
	}
	conf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	conf = conf.DeepCopy()
	conf.OS, conf.Architecture, conf.Variant = p.OS, p.Architecture, p.Variant
	conf.Config = v1.Config{Entrypoint: []string{"/" + program}, User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/" + home,
		Env:     []string{usualListen},
		Volumes: map[string]struct{}{"/" + home: {}}, ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8883/tcp": {}}, StopSignal: "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "postern cloud", "org.opencontainers.image.version": release, "org.opencontainers.image.licenses": "Apache-2.0"}}
	return mutate.ConfigFile(img, conf)
}

// layerOf is the one layer, a tar file without times and owners of the machine.
func layerOf(file, release string) ([]byte, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := modulesOf(file, release)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []struct {
		name  string
		mode  int64
		owner int
		body  []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\npostern:x:%d:\n", user)},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/\npostern:x:%d:%d:postern:/%s:/\n", user, user, home)},
		{"etc/ssl/", 0o755, 0, nil}, {"etc/ssl/certs/", 0o755, 0, nil},
		{authority, 0o644, 0, authorities()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil}, {"usr/bin/", 0o755, 0, nil},
		{program, 0o755, 0, binary},
		{"usr/share/", 0o755, 0, nil}, {"usr/share/postern/", 0o755, 0, nil},
		{modules, 0o644, 0, list},
		{"var/", 0o755, 0, nil}, {"var/lib/", 0o755, 0, nil},
		{home + "/", 0o700, user, nil},
	} {
		head := &tar.Header{Name: h.name, Mode: h.mode, Uid: h.owner, Gid: h.owner, Size: int64(len(h.body)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(h.name, "/") {
			head.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(h.body); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}

// authorities are the certificates that browsers trust, PEM. Those that are trusted for
// some names or times only are left out: a file cannot say so.
func authorities() (out []byte) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}

// modulesOf lists the modules that a program was built from, as SPDX 2.3.
func modulesOf(file, release string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	type ref struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	type pkg struct {
		ID       string `json:"SPDXID"`
		Name     string `json:"name"`
		Version  string `json:"versionInfo"`
		Download string `json:"downloadLocation"`
		Analyzed bool   `json:"filesAnalyzed"`
		Refs     []ref  `json:"externalRefs,omitempty"`
	}
	type relation struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
	packages := []pkg{{ID: "SPDXRef-main", Name: info.Main.Path, Version: release, Download: "NOASSERTION"},
		{ID: "SPDXRef-go", Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go"), Download: "NOASSERTION"}}
	relations := []relation{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-main"}, {"SPDXRef-main", "DEPENDS_ON", "SPDXRef-go"}}
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		id := fmt.Sprintf("SPDXRef-module-%d", i+1)
		packages = append(packages, pkg{ID: id, Name: m.Path, Version: m.Version, Download: "NOASSERTION", Refs: []ref{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}})
		relations = append(relations, relation{"SPDXRef-main", "DEPENDS_ON", id})
	}
	out, err := json.MarshalIndent(map[string]any{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "postern-cloud-" + release,
		"documentNamespace": "https://github.com/postern-io/postern/sbom/" + release,
		"creationInfo":      map[string]any{"created": "1970-01-01T00:00:00Z", "creators": []string{"Tool: postern-image"}},
		"packages":          packages, "relationships": relations}, "", " ")
	return append(out, '\n'), err
}
