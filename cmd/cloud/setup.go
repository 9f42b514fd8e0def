package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// setupSettings make the first business and its administrator at the first start,
// where there is no person to open the set-up page.
type setupSettings struct {
	Business     string `yaml:"business" json:"business"`
	Code         string `yaml:"business_code" json:"business_code"`
	Timezone     string `yaml:"timezone" json:"timezone"`
	Country      string `yaml:"country" json:"country"`
	Name         string `yaml:"name" json:"name"`
	Email        string `yaml:"email" json:"email"`
	PasswordFile string `yaml:"password_file" json:"password_file"`
}

func (s *settings) checkSetup(bad func(string, ...any)) {
	if s.Setup == (setupSettings{}) {
		return
	}
	if s.Setup.Business == "" || s.Setup.Email == "" || s.Setup.PasswordFile == "" {
		bad("setup: set business, email and password_file, or leave setup out")
		return
	}
	var err error
	if s.password, err = readPassword(s.Setup.PasswordFile); err != nil {
		bad("setup.password_file: %w", err)
	}
}

// readPassword reads the first line of a file that only its owner may read.
func readPassword(name string) (string, error) {
	if err := cli.CheckSecret(name); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimRight(line, "\r"), nil
}

func (s settings) setupInput() setup.Input {
	x := s.Setup
	return setup.Input{Business: x.Business, Code: x.Code, Timezone: x.Timezone, Country: x.Country, Name: x.Name, Email: x.Email, Password: s.password}
}

// begin does what a start of a deployment without an administrator needs: it
// makes the one of the settings, or prints the one-time address of the set-up page
// for the person at the terminal. It is in no log. Later starts print where to log
// in.
func begin(ctx context.Context, srv *server.Server, s settings, ln server.Listeners, log *slog.Logger, stdout io.Writer) error {
	if s.Setup.Email != "" {
		made, err := srv.Setup.Ensure(ctx, s.setupInput())
		if err != nil {
			return fmt.Errorf("setup: %w", explain(err))
		}
		if made {
			log.Info("first business and administrator made from the settings")
		}
		return nil
	}
	token, until, err := srv.Setup.IssueToken(ctx)
	if where := s.setupBase(ln); errors.Is(err, setup.ErrDone) {
		if where != "" {
			_, _ = fmt.Fprintf(stdout, "Log in at %s%s\n", where, page.ConsolePath) // for a person; the log has the listeners
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("prepare the set-up address: %w", err)
	}
	if srv.Lost != "" {
		_, _ = fmt.Fprintf(stdout, "\nA database belonged to the keys in %s, and it is gone. To have it back, stop this cloud,\nmove the new database away, and restore a backup: cloud restore\n", srv.Lost)
	}
	where := s.setupBase(ln)
	if where == "" {
		_, err = fmt.Fprintf(stdout, "\nNothing is set up yet. The set-up page needs HTTPS or the loopback, and this node listens on neither.\nMake the first business and its administrator with:\n\n    cloud setup --business NAME --email ADDRESS\n\n")
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nNothing is set up yet. Open this address once, until %s:\n\n    %s%s?key=%s\n\nor run: cloud setup --business NAME --email ADDRESS\n\n", until.Local().Format("15:04"), where, page.SetupPath, token)
	return err
}

// setupBase is the address of this node at which the set-up page is served; ""
// when there is none.
func (s settings) setupBase(ln server.Listeners) string {
	if strings.HasPrefix(s.BaseURL, "https://") {
		return strings.TrimRight(s.BaseURL, "/")
	}
	if ln.HTTP == nil {
		return ""
	}
	at, ok := ln.HTTP.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() && !at.IP.IsLoopback() {
		return ""
	}
	if s.BaseURL == "" && at.String() == usualListen {
		return usualPage
	}
	if at.IP.IsLoopback() {
		return "http://" + at.String()
	}
	return fmt.Sprintf("http://localhost:%d", at.Port)
}

// setupCommand makes people by hand. Its user holds the keys of the
// deployment.
type setupCommand struct {
	Email        string `required:"" help:"Address of the administrator or operator." placeholder:"EMAIL"`
	Name         string `help:"Name of the person. Default: the address."`
	Business     string `help:"Name of a new business." placeholder:"NAME"`
	Code         string `name:"business-code" help:"Code of the business: of one that exists, or for the new one. Default: made of its name." placeholder:"CODE"`
	Timezone     string `help:"Of a new business, such as America/Toronto. Default: UTC." placeholder:"ZONE"`
	Country      string `help:"Of a new business, such as CA." placeholder:"CODE"`
	Operator     bool   `help:"Make an operator of the platform, who belongs to no business."`
	PasswordFile string `help:"File that holds the password, - for standard input. Default: one is made and printed." placeholder:"FILE"`
}

func (c setupCommand) run(ctx context.Context, s settings, log *slog.Logger, stdin io.Reader, stdout io.Writer) (err error) {
	if c.Operator && (c.Business != "" || c.Code != "") {
		return errors.New("setup: an operator belongs to no business; leave out --business and --business-code, or --operator")
	}
	in := setup.Input{Business: c.Business, Code: c.Code, Timezone: c.Timezone, Country: c.Country, Name: c.Name, Email: c.Email}
	made := false
	switch c.PasswordFile {
	case "":
		in.Password, made = auth.NewToken()[:20], true
	case "-":
		line, err := bufio.NewReader(io.LimitReader(stdin, 1024)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("setup: read password: %w", err)
		}
		in.Password = strings.TrimRight(line, "\r\n")
	default:
		if in.Password, err = readPassword(c.PasswordFile); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	where := dataFolder(s)
	srv, err := server.New(ctx, s.server(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(srv)) }()
	add := srv.Setup.Administrator
	if c.Operator {
		add = srv.Setup.Operator
	}
	out, err := add(ctx, in)
	if errors.Is(err, setup.ErrWhich) {
		return errors.New("setup: name the business, --business NAME for a new one or --business-code CODE for one that exists")
	}
	if errors.Is(err, setup.ErrThere) {
		return errors.New("setup: there is a business with this code, and nothing was changed: leave --business out and name it by --business-code, for another administrator or a new password; or give the new business another code")
	}
	if err != nil {
		return fmt.Errorf("setup: %w", explain(err))
	}
	return c.print(stdout, out, in.Password, made, where)
}

// dataFolder names the data folder that a command is about to use, in whole, and says
// whether the command makes it.
func dataFolder(s settings) string {
	name, err := filepath.Abs(s.Data)
	if err != nil {
		name = s.Data
	}
	if s.hasData() != nil {
		return name + ", made by this command"
	}
	return name
}

// print says what was made, and a password that was made with it, this once.
func (c setupCommand) print(w io.Writer, out setup.Made, password string, made bool, where string) error {
	kind := "administrator of " + out.Business.Name + " (" + out.Business.Code + ")"
	if c.Operator {
		kind = "operator of the platform"
	}
	if out.Replaced {
		kind += ", new password"
	}
	text := out.Account.Email + ": " + kind + "\n"
	if made {
		text += "password: " + password + "\n"
	}
	text += "data folder: " + where + "\n"
	_, err := io.WriteString(w, text)
	return err
}

// explain is an error of an input with its messages.
func explain(err error) error {
	var shown *cloud.Error
	if !errors.As(err, &shown) || len(shown.Fields) == 0 {
		return err
	}
	var all []string
	for field, messages := range shown.Fields {
		for _, m := range messages {
			all = append(all, strings.ReplaceAll(field, "_", "-")+": "+m)
		}
	}
	return errors.New(strings.Join(all, " "))
}
