// Program release makes the key of releases and signs updates of the edge agent with it, on
// a machine that no cabinet and no cloud is reached from.
//
//	release key release.pem                                            once: the key, and its public half
//	release sign --key release.pem --release 1.4.0 edge edge-1.4.0     an artefact for edge install-update
//
// Long flags may have one dash. The key is never printed.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
)

type options struct {
	Version bool    `help:"Print the version and stop."`
	Key     makeKey `cmd:"" help:"Make the key of releases in a file and print its public half, which is the setting release_keys of the cloud."`
	Sign    sign    `cmd:"" help:"Sign a program of the edge agent as an update. System and processor are read from it."`
}

// edgeProgram is the program that cabinets run, as its build names it.
const edgeProgram = "github.com/postern-io/postern/cmd/edge"

const pemType = "PRIVATE KEY"

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-version") { // without a command
		return cli.PrintVersion(stdout, "release")
	}
	var opt options
	command, err := cli.Parse(&opt, "release", "Makes the key of releases and signs updates of the edge agent.", args, stdout, stderr)
	if errors.Is(err, cli.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if command.Command() == "key <file>" {
		return opt.Key.run(stdout)
	}
	return opt.Sign.run(stdout)
}

// makeKey makes a key, PKCS #8 in PEM.
type makeKey struct {
	File string `arg:"" help:"Where to write the key, mode 0600. It must not exist."`
}

func (k makeKey) run(stdout io.Writer) (err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(k.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: pemType, Bytes: der}), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("make a key: %w", errors.Join(err, os.Remove(k.File)))
	}
	_, err = fmt.Fprintf(stdout, "%s holds the key: cabinets that know it take no updates without it\nrelease_keys: [%s]\n", k.File, base64.StdEncoding.EncodeToString(public))
	return err
}

// readKey reads what makeKey wrote. What the file holds is in no error.
func readKey(file string) (*signed.Signer, error) {
	raw, err := cli.ReadSecret(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemType {
		return nil, fmt.Errorf("read the key: %s is not the PEM file that release key writes", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("read the key: %s holds no Ed25519 key", file)
	}
	return signed.NewSigner(private)
}

// sign makes an artefact of a program.
type sign struct {
	Key     string `required:"" help:"File with the key of releases." placeholder:"FILE"`
	Release string `required:"" help:"The program's version, as its build names it: 1.4.0. Cabinets take only versions above those that they had." placeholder:"VERSION"`
	Program string `arg:"" help:"The program: edge, as it was built for one system and processor."`
	Out     string `arg:"" help:"Where to write the artefact."`
}

func (s sign) run(stdout io.Writer) error {
	signer, err := readKey(s.Key)
	if err != nil {
		return err
	}
	m := release.Manifest{Product: release.Edge, Version: release.VersionOf(s.Release)}
	if m.Version == "" {
		return fmt.Errorf("--release %q must be a semantic version without build metadata, such as 1.4.0", s.Release)
	}
	program, err := os.ReadFile(s.Program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	if m.System, m.Arch, err = machineOf(program); err != nil {
		return fmt.Errorf("%s: %w", s.Program, err)
	}
	switch said := versionIn(program); said {
	case m.Version:
	case "":
		return fmt.Errorf("%s: the build named no version: build it as --release %s (make build VERSION=%s)", s.Program, m.Version, m.Version)
	default:
		return fmt.Errorf("%s: the program says that it is version %q: sign it as that, or build it as --release %s (make build VERSION=%s)", s.Program, said, m.Version, m.Version)
	}
	var out bytes.Buffer
	if err := release.Write(&out, signer, m, program); err != nil {
		return err
	}
	if err := wholefile.Replace(s.Out, out.Bytes()); err != nil {
		return err
	}
	if err := os.Chmod(s.Out, 0o644); err != nil { // it is no secret, and the agent's user reads it
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is edge %s for %s/%s, %d bytes, signed by the key %x\n", s.Out, m.Version, m.System, m.Arch, len(program), signer.Pinned().ID)
	return err
}

// releaseMark is how a build names its version in the program's bytes; see cli.Version.
var releaseMark = regexp.MustCompile(`\[\[postern-release:([0-9A-Za-z.+-]{1,64})\]\]`)

// versionIn is the version that a program says of itself, whatever machine it is for; "" where
// its build named none.
func versionIn(program []byte) string {
	if found := releaseMark.FindSubmatch(program); found != nil {
		return release.VersionOf(string(found[1]))
	}
	return ""
}

// machineOf says what a program was built for. Another one than the edge agent is refused:
// a cabinet would not come back from it by itself.
func machineOf(program []byte) (system, arch string, err error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return "", "", fmt.Errorf("this is no program of Go: %w", err)
	}
	if info.Path != edgeProgram {
		return "", "", fmt.Errorf("this is the program %s, want %s", info.Path, edgeProgram)
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			system = s.Value
		case "GOARCH":
			arch = s.Value
		}
	}
	if system == "" || arch == "" {
		return "", "", errors.New("the program does not say which system and processor it was built for")
	}
	return system, arch, nil
}
