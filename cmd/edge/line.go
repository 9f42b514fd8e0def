package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/internal/shell"
	"github.com/postern-io/postern/protocol/wiring"
)

const lineForms = "tcp://HOST:PORT, such as tcp://127.0.0.1:7001, or a serial device, such as /dev/ttyUSB0"

var (
	comPort  = regexp.MustCompile(`^COM[0-9]{1,3}$`)
	lineName = regexp.MustCompile(`^[A-Za-z0-9_.-]+=`)
)

// setLines puts what --line gave into the settings: the address of the one line, or
// NAME=ADDRESS for each of several. Settings without lines get one, with the board
// that the set-up page's layouts mean and no item sensors.
func (s *settings) setLines(given []string) error {
	if len(given) == 0 {
		return nil
	}
	var names []string
	for _, l := range s.Lines {
		names = append(names, l.Name)
	}
	if len(names) == 0 && len(given) > 1 {
		return errors.New("the settings have no lines, so --line is one address; name further lines and their boards in a settings file, as in configs/edge.yaml")
	}
	set := map[string]bool{}
	for _, text := range given {
		name, address := "", text
		if lineName.MatchString(text) {
			name, address, _ = strings.Cut(text, "=")
		}
		if !isLineAddress(address) {
			return fmt.Errorf("--line %q: use %s", text, lineForms)
		}
		switch {
		case len(names) == 0 && name != "":
			return fmt.Errorf("--line %q: the settings have no line %q; --line is one address", text, name)
		case len(names) == 0:
			s.Lines = []line{{Name: wiring.Line, Port: address, Boards: []boardEntry{{Name: wiring.Board, Family: wiring.Family}}}}
			continue
		case len(names) > 1 && name == "":
			return fmt.Errorf("--line %q: the settings have the lines %s: use --line NAME=ADDRESS", text, strings.Join(names, ", "))
		case name == "":
			name = names[0]
		case !slices.Contains(names, name):
			return fmt.Errorf("--line %q: the settings have no line %q; they have %s", text, name, strings.Join(names, ", "))
		}
		if set[name] {
			return fmt.Errorf("--line %q: the line %s has been given an address already", text, name)
		}
		set[name] = true
		s.Lines[slices.Index(names, name)].Port = address
	}
	return nil
}

// isLineAddress reports whether a text can be the port of a line. A relative path
// is none: it is an address that lacks its tcp://, most often.
func isLineAddress(text string) bool {
	if addr, ok := strings.CutPrefix(text, "tcp://"); ok {
		return hostPort(addr)
	}
	return filepath.IsAbs(text) || comPort.MatchString(text)
}

// flags are those that this run was given, for another run.
func (opt options) flags() (args []string) {
	add := func(flag string, value *string) {
		if value != nil {
			args = append(args, flag, *value)
		}
	}
	if opt.Config != "" {
		add("--config", &opt.Config)
	}
	add("--data", opt.Data)
	add("--secrets", opt.Secrets)
	add("--kiosk-listen", opt.KioskListen)
	add("--log-level", opt.LogLevel)
	add("--tls-roots", opt.TLSRoots)
	for _, l := range opt.Line {
		add("--line", &l)
	}
	return args
}

// packagedName is this program in the Debian package, and its unit.
const packagedName = "postern-edge"

// packagedNext is nextCommand where the cabinet runs as a service.
func packagedNext(s settings, config string) (command, missing string) {
	if len(s.Lines) == 0 && !s.isPost() {
		missing = "name the lines to the lock boards in " + config + " before: no door opens without"
	}
	return "systemctl start " + packagedName, missing
}

// nextCommand is the command that runs the cabinet with the settings that this run
// was given, and a sentence about what is missing in it, "" when nothing is.
func (opt options) nextCommand(s settings) (command, missing string) {
	if filepath.Base(os.Args[0]) == packagedName {
		return packagedNext(s, opt.Config)
	}
	args := opt.flags()
	if len(s.Lines) == 0 && !s.isPost() {
		args, missing = append(args, "--line", "ADDRESS"), "ADDRESS is "+lineForms+": the line to the lock boards"
	}
	return shell.Command(cli.Sibling("edge"), args...), missing
}
