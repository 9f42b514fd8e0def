package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
)

// enrol is the one call by which a device gets its secrets. The device makes a
// key of its own for it, whose public half goes with the one-time token: what the
// cabinet says later is signed by it.
type enrol struct {
	URL     string `arg:"" optional:"" help:"Address of the cloud, https://…"`
	Code    string `arg:"" optional:"" help:"Device code, as --device."`
	Key     string `arg:"" optional:"" name:"one-time-token" help:"One-time token, as --token: others of this machine can see the arguments of a program, so standard input is the better way."`
	Device  string `help:"This device's code." placeholder:"CODE"`
	Token   string `env:"POSTERN_ENROL_TOKEN" help:"One-time token. Without it: one line on standard input, which may hold address and device code before it, as the device's page and its QR code have it." placeholder:"TOKEN"`
	Replace bool   `help:"Overwrite secrets that are there."`
}

const (
	enrolPath  = "/api/v1/devices/enrol"
	enrolWait  = 30 * time.Second
	maxAnswer  = 64 << 10
	maxMessage = 200 // of an error that is shown
)

// run enrols, writes the secrets and prints the command that comes next.
func (e enrol) run(ctx context.Context, s settings, next func(settings) (command, missing string), roots *tls.Config, stdin io.Reader, stdout io.Writer) error {
	// The token works once: everything that can fail here fails before it is
	// used.
	if _, err := os.Lstat(s.Secrets); err == nil && !e.Replace {
		return fmt.Errorf("enrol: %s is there already; --replace overwrites it", s.Secrets)
	}
	if err := e.arguments(); err != nil {
		return err
	}
	if e.URL != "" || e.Device != "" { // a mistake is reported before anything is typed
		if _, err := e.address(); err != nil {
			return err
		}
	}
	if err := writable(s.Secrets); err != nil {
		return fmt.Errorf("enrol: %w", err)
	}
	token := e.Token
	if token == "" || e.URL == "" {
		var err error
		if token, err = e.scan(stdin, stdout); err != nil {
			return err
		}
	}
	address, err := e.address()
	if err != nil {
		return err
	}
	seed, public := signed.NewSeed()
	secrets, err := e.call(ctx, address, token, public, roots)
	if err != nil {
		return fmt.Errorf("enrol at %s: %w", address, err)
	}
	secrets.DeviceKey = seed // made here; it never travels
	secrets.CloudURL = strings.TrimSuffix(address, enrolPath)
	raw, err := json.MarshalIndent(secrets, "", "  ")
	if err == nil {
		err = wholefile.Replace(s.Secrets, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("enrol: %w; the token is used up, ask for another one", err)
	}
	command, missing := next(s)
	if missing != "" {
		missing += "\n"
	}
	_, err = fmt.Fprintf(stdout, "enrolled as %s; secrets are in %s\n%snext: %s\n%s", secrets.DeviceCode, s.Secrets, unreachable(secrets), command, missing)
	return err
}

// unreachable warns of brokers that this computer cannot reach: those of another computer's
// loopback.
func unreachable(s access.Secrets) string {
	if s.CloudURL == "" || cli.AreLoopback([]string{s.CloudURL}) || !cli.AreLoopback(s.Brokers) {
		return ""
	}
	return fmt.Sprintf("warning: this cabinet will not connect: the cloud is at %s, and its broker addresses are on the loopback of this computer (%s). Let the cloud's mqtt.brokers name an address that others reach, and enrol again with another token\n", s.CloudURL, strings.Join(s.Brokers, ", "))
}

// arguments takes the line of the device's page from behind the command, as three arguments
// or in quotes, and finds what is given twice.
func (e *enrol) arguments() error {
	if words := strings.Fields(e.URL); len(words) > 1 {
		if len(words) != 3 || e.Code != "" {
			return errors.New("enrol: the line of the page is address, device code and token, separated by spaces")
		}
		e.URL, e.Code, e.Key = words[0], words[1], words[2]
	}
	if e.Code != "" && e.Device != "" && e.Code != e.Device {
		return fmt.Errorf("enrol: two device codes are given, %s and %s", short(e.Code), short(e.Device))
	}
	if e.Key != "" && e.Token != "" && e.Key != e.Token {
		return errors.New("enrol: two tokens are given, as an argument and by --token or POSTERN_ENROL_TOKEN")
	}
	e.Device, e.Token = cmp.Or(e.Device, e.Code), cmp.Or(e.Token, e.Key)
	return nil
}

// scan reads what is typed or scanned: the token alone when address and device
// code are given, else all three, separated by spaces. One of the two alone was
// refused before.
func (e *enrol) scan(stdin io.Reader, stdout io.Writer) (token string, err error) {
	if e.URL == "" && isTerminal(stdin) {
		_, _ = fmt.Fprintln(stdout, "Scan the QR code of the cabinet's page, or type address, device code and token, separated by spaces:")
	}
	line, err := bufio.NewReader(io.LimitReader(stdin, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("enrol: read standard input: %w", err)
	}
	switch words := strings.Fields(line); {
	case len(words) == 3 && (e.URL == "" || e.URL == words[0] && e.Device == words[1]):
		e.URL, e.Device = words[0], words[1]
		return words[2], nil
	case len(words) == 3:
		return "", fmt.Errorf("enrol: the code is for %s at %s, not for %s at %s", short(words[1]), short(words[0]), e.Device, e.URL)
	case len(words) == 0:
		return "", errors.New("enrol: no token; give it on standard input, in POSTERN_ENROL_TOKEN or with --token")
	case e.URL == "":
		return "", errors.New("enrol: give address, device code and token on one line of standard input, separated by spaces, as the QR code of the cabinet's page has them; or the address as an argument and --device")
	}
	return strings.TrimSpace(line), nil
}

// isTerminal reports whether a person may be typing.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// address is where to enrol. Secrets come back, so it is https, or this machine.
func (e enrol) address() (string, error) {
	if !topic.ValidCode(e.Device) {
		return "", fmt.Errorf("enrol: device code %q: 1 to %d of A-Z a-z 0-9 _ -", e.Device, topic.MaxCode)
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("enrol: %q is not an address such as https://tms.example", e.URL)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !cli.IsLoopback(u.Hostname()+":"+port)) {
		return "", fmt.Errorf("enrol: %s is not https; secrets would cross the network in the clear", u.Redacted())
	}
	return strings.TrimSuffix(u.String(), "/") + enrolPath, nil
}

// writable proves that a file can be made beside name.
func writable(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".try.*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (e enrol) call(ctx context.Context, address, token string, public []byte, roots *tls.Config) (s access.Secrets, err error) {
	body, err := json.Marshal(map[string]string{"device_code": e.Device, "token": token, "public_key": base64.StdEncoding.EncodeToString(public)})
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, enrolWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	// No redirect is followed: the token goes to the given address, and nowhere else.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: roots, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	r, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return s, fmt.Errorf("read answer: %w", err)
	}
	return e.secrets(r.StatusCode, raw)
}

// secrets reads the answer.
func (e enrol) secrets(status int, raw []byte) (access.Secrets, error) {
	var answer struct {
		Result    bool   `json:"result"`
		ErrorCode string `json:"error_code"`
		Message   string `json:"message"`
		access.Secrets
	}
	err := json.Unmarshal(raw, &answer)
	switch {
	case err == nil && answer.ErrorCode != "":
		return answer.Secrets, fmt.Errorf("refused: %s (%q); ask for a new token when this one was used or is older than a day",
			short(answer.ErrorCode), short(answer.Message))
	case status/100 != 2 || err != nil || !answer.Result:
		return answer.Secrets, fmt.Errorf("answer %d is not an enrolment; is this the address of the cloud?", status)
	case answer.DeviceCode != e.Device:
		return answer.Secrets, fmt.Errorf("answered for device %q", short(answer.DeviceCode))
	}
	return answer.Secrets, answer.Check()
}

func short(s string) string {
	if len(s) > maxMessage {
		return strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
