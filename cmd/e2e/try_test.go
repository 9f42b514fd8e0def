package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
)

// A stranger who has built the programs starts one of them, opens the address that
// it prints, and does nothing but what pages say: fills forms, copies commands,
// types codes, puts a parcel in, takes it out. Nothing else is known to the test.
func TestAStrangerSendsAFirstParcel(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	browser := browsertest.Start(t)
	ring.Needs(t, ring.EnvBrowsers, "chromium (Debian's chromium)", browser != nil)
	s := newVisitor(t, build(t))
	began := time.Now()
	office := browser.Open(s.begin())

	// The first business.
	for field, text := range map[string]string{"business": "Harbour Lockers", "email": "ada@harbour.example", "password": beginnerPassword} {
		office.Fill("#"+field, text)
	}
	office.Click("main form button")
	office.Arrive(`location.pathname === "/setup/cabinet"`)
	office.Fill("#device_name", "Pier 7")
	office.Fill("#device_code", "PIER-7")
	office.Click("main form.card button")

	// The commands, as they stand on the page.
	office.Arrive(`document.querySelector("#command-edge")`)
	look(office, "enrolment")
	require.Equal(t, "no", office.Attr("#connection", "data-connected"))
	console := browser.Open(s.base + "/console")
	require.Contains(t, console.Text("#cabinets .counts"), "8 not connected yet")
	require.NotContains(t, console.Text("#cabinets"), "free")
	look(console, "console-never")
	office.Call("Page.bringToFront", nil)
	s.start(office.Text("#command-simulator"))
	enrolled := s.do(office.Text("#command-enrol"))
	run := office.Text("#command-edge")
	require.Contains(t, enrolled, "next: "+run+"\n", "enrolment ends with the command of the page")
	s.start(run)
	office.Await(`document.querySelector("#connection").dataset.connected === "yes"`) // by itself
	look(office, "connected")

	// The first parcel: the courier's part.
	office.Click("#send button")
	office.Arrive(`location.pathname.endsWith("/parcel") && document.querySelector("#code")`)
	require.Empty(t, office.Search(), "nothing of it is in the address")
	look(office, "courier")
	where := office.Attr("#screen", "href")
	screen, doors := browser.Open(where), browser.Open(office.Attr("#simulator", "href"))
	door, code := office.Text("#door"), digits(office.Text("#code"))
	require.Len(t, code, 7, "the courier's code")
	s.secrets = append(s.secrets, code)
	doors.Call("Page.bringToFront", nil)
	look(doors, "simulator")
	typeCode(screen, code)
	reach(t, doors, where, door, "put", "full")

	// The recipient's part.
	office.Call("Page.bringToFront", nil)
	office.Await(`document.querySelector("#progress").dataset.status === "delivered" && document.querySelector("#code")`)
	look(office, "recipient")
	translate(office, s.base+"/setup/cabinet/1/parcel", "recipient")
	translate(office, s.base+"/setup/cabinet/1", "connection")
	office.Go(s.base + "/setup/cabinet/1/parcel")
	require.Equal(t, door, office.Text("#door"))
	code = digits(office.Text("#code"))
	require.Len(t, code, 6, "the recipient's code")
	s.secrets = append(s.secrets, code)
	typeCode(screen, code)
	reach(t, doors, where, door, "take", "open:not(.full)")
	office.Call("Page.bringToFront", nil)
	office.Await(`document.querySelector("#progress").dataset.status === "picked_up"`)
	look(office, "collected")
	require.False(t, office.Has("#code"), "the code is of no use any more")
	took := time.Since(began)
	t.Logf("from the first start to a collected parcel: %s", took.Round(100*time.Millisecond))

	// The console shows the parcel's way, and staff find it from the front page.
	office.Go(s.base + "/")
	look(office, "home")
	office.Click("#staff")
	office.Arrive(`location.pathname === "/console"`)
	require.Contains(t, office.Text("#deliveries"), "LD-")
	for _, secret := range s.secrets {
		require.NotContains(t, s.logs(), secret)
	}
}

// visitor is a person at a terminal in an empty folder with the built programs.
type visitor struct {
	t       *testing.T
	dir     string
	base    string // of the cloud, as printed
	running []*process
	secrets []string // that no log may hold
}

func newVisitor(t *testing.T, bin programs) *visitor {
	s := &visitor{t: t, dir: t.TempDir(), secrets: []string{beginnerPassword}}
	require.NoError(t, os.Symlink(string(bin), filepath.Join(s.dir, "bin")))
	return s
}

// shell prepares a command that is typed in the folder.
func (s *visitor) shell(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// start types a command and leaves it running.
func (s *visitor) start(line string) *process {
	s.t.Helper()
	p := &process{name: line, cmd: s.shell(line), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	s.run(p)
	return p
}

func (s *visitor) run(p *process) {
	require.NoError(s.t, p.cmd.Start())
	s.running = append(s.running, p)
	go func() { p.done <- p.cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // the shell and what it started
		<-p.done
		if s.t.Failed() {
			s.t.Log(p.name, "\n", p.tail())
		}
	})
}

// do types a command that ends.
func (s *visitor) do(line string) string {
	s.t.Helper()
	out, err := s.shell(line).CombinedOutput()
	require.NoError(s.t, err, "%s: %s", line, out)
	if given, command, ok := strings.Cut(line, "' | "); ok && strings.Contains(command, " enrol") {
		words := strings.Fields(given)
		s.secrets = append(s.secrets, words[len(words)-1])
		require.NotContains(s.t, command, words[len(words)-1], "others of the machine see arguments")
	}
	return string(out)
}

// begin starts the cloud and gives the address that it prints.
func (s *visitor) begin() (printed string) {
	s.t.Helper()
	p := &process{name: "bin/cloud", cmd: s.shell("bin/cloud --listen " + freeAddress(s.t) + " --mqtt-listen " + freeAddress(s.t)), done: make(chan error, 1)}
	p.cmd.Stderr = p
	out, err := p.cmd.StdoutPipe()
	require.NoError(s.t, err)
	s.run(p)
	for lines := bufio.NewScanner(out); printed == "" && lines.Scan(); {
		printed = regexp.MustCompile(`http://\S+/setup\?\S+`).FindString(lines.Text())
	}
	require.NotEmpty(s.t, printed, "the address of the set-up page: %s", p.tail())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.base = printed[:strings.Index(printed, "/setup")]
	s.secrets = append(s.secrets, printed[strings.Index(printed, "key=")+4:])
	return printed
}

func (s *visitor) logs() string {
	var all strings.Builder
	for _, p := range s.running {
		all.WriteString(p.text())
	}
	return all.String()
}

func digits(text string) string { return regexp.MustCompile(`[^0-9]`).ReplaceAllString(text, "") }

// typeCode types a code at a cabinet's screen.
func typeCode(screen *browsertest.Tab, code string) {
	screen.Call("Page.bringToFront", nil)
	screen.Eval(`document.querySelector("#code") || document.querySelector("#home").click()`, nil)
	screen.Eval(`document.querySelector("#code") || document.querySelector("#pickup").click()`, nil)
	screen.Await(`document.activeElement.id === "code" && !document.activeElement.disabled`)
	screen.Call("Input.insertText", map[string]any{"text": code})
	screen.Press("Enter")
}

// reach puts a parcel behind a door when it has swung open, or takes everything out,
// and shuts the door. A person takes longer to reach in than the agent to be sure
// that an open door is no bounce.
func reach(t *testing.T, doors *browsertest.Tab, screen, door, action, then string) {
	t.Helper()
	doors.Call("Page.bringToFront", nil)
	doors.Await(`document.querySelector("#door-` + door + `.open")`)
	ring.Await(t, func() bool {
		v, err := getPublic(screen)
		return err == nil && slices.ContainsFunc(v.Openings, func(o kiosk.OpeningView) bool {
			return slices.ContainsFunc(o.Doors, func(d kiosk.OpeningDoor) bool { return fmt.Sprint(d.Door) == door && d.Phase == "open" })
		})
	}, "door "+door+" open for the agent")
	doors.Click("#door-" + door)
	doors.Await(`document.querySelector("[data-action=` + action + `][aria-disabled=false]")`)
	doors.Click("[data-action=" + action + "]")
	doors.Await(`document.querySelector("#door-` + door + "." + then + `")`)
	doors.Click("[data-action=close]")
	doors.Await(`document.querySelector("#door-` + door + `:not(.open)")`)
}

// translate looks at a page in the other languages on a telephone, in the full ring
// and where pictures are wanted, and goes back to English.
func translate(x *browsertest.Tab, address, name string) {
	if os.Getenv(browsertest.Pictures) == "" && !ring.Full() {
		return
	}
	x.Window(360, 740, "light")
	for _, lang := range []string{"zh-Hans", "zh-Hant", "fr", "de", "es", "en"} {
		x.Go(address + "?lang=" + lang)
		x.CheckAccess(name + " " + lang)
		x.Picture(name + "-" + lang)
	}
	x.Window(1280, 900, "light")
}

// look keeps a page in pictures and finds nothing that axe objects to.
func look(x *browsertest.Tab, name string) {
	looks := []struct {
		name, scheme string
		wide         int
	}{{"wide-light", "light", 1280}}
	if os.Getenv(browsertest.Pictures) != "" || ring.Full() {
		looks = append(looks, []struct {
			name, scheme string
			wide         int
		}{{"wide-dark", "dark", 1280}, {"narrow-dark", "dark", 360}, {"narrow-light", "light", 360}}...)
	}
	for _, l := range looks {
		x.Window(l.wide, 900, l.scheme)
		x.CheckAccess(name + " " + l.name)
		x.Picture(name + "-" + l.name)
	}
	x.Window(1280, 900, "light")
}
