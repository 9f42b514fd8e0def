package main

import (
	"archive/tar"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// makeImage makes the image for a kind of processor and gives its digest and itself.
func makeImage(t *testing.T, dir, arch string) (string, v1.Image) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-o", dir, "-release", "v1.2.3", "-platforms", "linux/" + arch}, &out))
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	list, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, list.Manifests, 1)
	require.Equal(t, &v1.Platform{OS: "linux", Architecture: arch}, list.Manifests[0].Platform)
	img, err := index.Image(list.Manifests[0].Digest)
	require.NoError(t, err)
	digest, _, _ := strings.Cut(out.String(), " ")
	return digest, img
}

// unpack unpacks the layers of an image as a container's root and gives the heads of its
// files.
func unpack(t *testing.T, img v1.Image, root string) map[string]*tar.Header {
	t.Helper()
	heads := map[string]*tar.Header{}
	layers, err := img.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	r, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer r.Close()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return heads
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name))
		heads[h.Name] = h
		at := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.Mkdir(at, fs.FileMode(h.Mode).Perm()))
		} else {
			f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode).Perm())
			require.NoError(t, err)
			_, err = io.Copy(f, files)
			require.NoError(t, errors.Join(err, f.Close()))
		}
		if os.Getuid() == 0 {
			require.NoError(t, os.Lchown(at, h.Uid, h.Gid))
		}
	}
}

// The image holds the program alone, says how it is started, and the program runs in it
// as its user. Two builds give the same digest.
func TestImage(t *testing.T) {
	ring.SkipUnlessFull(t, "builds every package anew, without paths of this machine")
	t.Parallel()
	root := t.TempDir()
	digest, img := makeImage(t, filepath.Join(t.TempDir(), "image"), runtime.GOARCH)
	again, _ := makeImage(t, filepath.Join(t.TempDir(), "again"), runtime.GOARCH)
	require.Equal(t, digest, again)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", digest)
	conf, err := img.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/bin/cloud"}, conf.Config.Entrypoint)
	require.Equal(t, "65532:65532", conf.Config.User)
	require.Equal(t, []string{"POSTERN_USUAL_LISTEN=:8080"}, conf.Config.Env, "the loopback of a container reaches no caller")
	require.True(t, conf.Created.IsZero())

	heads := unpack(t, img, root)
	for name, h := range heads {
		require.True(t, h.ModTime.IsZero() || h.ModTime.Unix() == 0, name)
		require.Zero(t, h.Mode&0o6022&^0o1777, name)
		if h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0 {
			require.Equal(t, program, name, "no shell and no other program")
		}
	}
	require.Equal(t, user, heads[home+"/"].Uid)
	raw, err := os.ReadFile(filepath.Join(root, authority))
	require.NoError(t, err)
	roots := 0
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		roots++
	}
	require.Greater(t, roots, 80)
	raw, err = os.ReadFile(filepath.Join(root, modules))
	require.NoError(t, err)
	var sbom struct {
		Version  string `json:"spdxVersion"`
		Packages []struct{ Name, VersionInfo string }
	}
	require.NoError(t, json.Unmarshal(raw, &sbom))
	require.Equal(t, "SPDX-2.3", sbom.Version)
	names := map[string]string{}
	for _, p := range sbom.Packages {
		names[p.Name] = p.VersionInfo
	}
	require.Equal(t, "v1.2.3", names["github.com/postern-io/postern"])
	require.NotEmpty(t, names["github.com/jackc/pgx/v5"])
	require.NotContains(t, names, "github.com/google/go-containerregistry", "tools are not part of the program")

	serves(t, root, conf)
}

// The image for the other kind of processor is the same and runs too, in an emulator.
func TestImageOfTheOtherProcessor(t *testing.T) {
	ring.SkipUnlessFull(t, "builds every package anew, for another processor")
	t.Parallel()
	arch, emulator := "arm64", "qemu-aarch64-static"
	if runtime.GOARCH == arch {
		arch, emulator = "amd64", "qemu-x86_64-static"
	}
	at, err := exec.LookPath(emulator)
	ring.Needs(t, ring.EnvTools, emulator, err == nil)
	root := t.TempDir()
	_, img := makeImage(t, filepath.Join(t.TempDir(), "image"), arch)
	conf, err := img.ConfigFile()
	require.NoError(t, err)
	unpack(t, img, root)
	raw, err := os.ReadFile(at)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, emulator), raw, 0o755))
	serves(t, root, conf, "/"+emulator)
}

// serves starts the program of an unpacked image in it as its user, by an emulator if one is
// named, and ends it once it has answered.
func serves(t *testing.T, root string, conf *v1.ConfigFile, emulator ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root starts a program in another root")
	}
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the program's user passes
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	inside := func(args ...string) *exec.Cmd {
		words := append(append(emulator[:len(emulator):len(emulator)], conf.Config.Entrypoint[0]), args...)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Path, cmd.Err, cmd.Dir, cmd.Env = words[0], nil, conf.Config.WorkingDir, []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}
	out, err := inside("--version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "v1.2.3")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	require.NoError(t, ln.Close())
	cmd := inside("--listen", addr, "--mqtt-listen", "")
	cmd.Args = append(cmd.Args, "--broker", "ssl://tms.example:8883")
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	ring.Await(t, func() bool {
		a, err := http.Get(fmt.Sprintf("http://%s/readyz", addr))
		return err == nil && a.Body.Close() == nil && a.StatusCode == http.StatusOK
	}, "the program in the image serves")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", log.String())
	require.FileExists(t, filepath.Join(root, home, "data", "cloud", "postern.db"))
}
