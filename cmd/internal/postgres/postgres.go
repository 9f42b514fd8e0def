// Package postgres runs PostgreSQL servers of the distribution's packages as processes of
// their own, on the loopback and without a password: for tests and for a deployment to try.
// They take connections of the user postern to the database postern. As root they run as
// the user postgres, since PostgreSQL refuses root.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	name    = "postern" // of user and database
	patient = 30 * time.Second
	look    = 50 * time.Millisecond
)

// Server is a server with its folder. Its methods are for one goroutine.
type Server struct {
	bin, dir, port string
	owner          *syscall.Credential // nil: this process's
	cmd            *exec.Cmd
	ended          chan error
}

// New makes an empty server in a new folder below parent, which everybody must be able to
// enter; it does not start it. Error: a missing program, with the package to install.
func New(ctx context.Context, parent string) (*Server, error) {
	s, err := prepare(parent)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, "initdb", "-D", s.dir, "-A", "trust", "-U", name, "-E", "UTF8", "--no-sync"); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func prepare(parent string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(parent, "postgres-"); err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	if os.Getuid() != 0 {
		return s, nil
	}
	if s.owner, err = account(); err == nil {
		err = s.own(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// programs is the folder of PostgreSQL's programs.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL's initdb is not installed: install the package postgresql")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// account is who the server runs as when this process is root.
func account() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and another user is needed: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("group of user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own gives a file or folder to who the server runs as.
func (s *Server) own(path string) error {
	if s.owner == nil {
		return nil
	}
	return os.Chown(path, int(s.owner.Uid), int(s.owner.Gid))
}

func freePort() (string, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, errors.Join(err, ln.Close())
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner}
	return cmd
}

func (s *Server) run(ctx context.Context, program string, args ...string) error {
	if out, err := s.command(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}

// Start starts the server and waits until it takes connections.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.dir+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open PostgreSQL's log: %w", err)
	}
	defer log.Close()
	s.cmd = s.command(context.WithoutCancel(ctx), "postgres", "-D", s.dir, "-p", s.port, "-k", s.dir, "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", "-c", "fsync=off")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	return s.await(ctx, "PostgreSQL takes no connections", func(ctx context.Context) error {
		return s.query(ctx, "postgres", `SELECT 1`)
	})
}

// await tries again until done succeeds or it took too long.
func (s *Server) await(ctx context.Context, what string, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case ended := <-s.ended:
			s.ended <- ended
			return fmt.Errorf("%s: it ended: %w", what, errors.Join(ended, err))
		case <-time.After(look):
		}
	}
}

// query runs a statement, and fails when its first value is false.
func (s *Server) query(ctx context.Context, database, sql string) error {
	c, err := pgx.Connect(ctx, "postgres://"+name+"@127.0.0.1:"+s.port+"/"+database+"?sslmode=disable&connect_timeout=2")
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		if v, err := rows.Values(); err == nil && len(v) > 0 && v[0] == false {
			return errors.New(sql + ": not yet")
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// CreateDatabase makes the database that Address names.
func (s *Server) CreateDatabase(ctx context.Context) error {
	return s.query(ctx, "postgres", `CREATE DATABASE `+name)
}

// Address is where a program reaches whichever of servers takes writes.
func Address(servers ...*Server) string {
	hosts := ""
	for i, s := range servers {
		if i > 0 {
			hosts += ","
		}
		hosts += "127.0.0.1:" + s.port
	}
	return "postgres://" + name + "@" + hosts + "/" + name + "?sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
}

// Standby starts a copy of s that follows it, so that s acknowledges no commit before
// the copy has it.
func (s *Server) Standby(ctx context.Context, parent string) (*Server, error) {
	copied, err := prepare(parent)
	if err != nil {
		return nil, err
	}
	err = copied.run(ctx, "pg_basebackup", "-D", copied.dir, "-h", "127.0.0.1", "-p", s.port, "-U", name, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if err == nil {
		err = copied.Start(ctx)
	}
	if err == nil {
		err = s.query(ctx, "postgres", `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	}
	if err == nil {
		err = s.query(ctx, "postgres", `SELECT pg_reload_conf()`)
	}
	if err == nil {
		err = s.await(ctx, "the standby does not follow", func(ctx context.Context) error {
			return s.query(ctx, "postgres", `SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')`)
		})
	}
	if err != nil {
		return nil, errors.Join(err, copied.Crash(), copied.Remove())
	}
	return copied, nil
}

// Promote makes a standby, whose server has ended, a server of its own, which waits for
// no other.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.query(ctx, "postgres", `SELECT pg_promote()`); err != nil {
		return err
	}
	return s.await(ctx, "the standby takes no writes", func(ctx context.Context) error {
		return s.query(ctx, "postgres", `SELECT NOT pg_is_in_recovery()`)
	})
}

// Crash ends the server without letting it write anything to its end; Start brings it
// back from its log.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

// Stop ends the server in order, whoever is connected.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

func (s *Server) end(sig syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end PostgreSQL: %w", err)
	}
	s.cmd = nil
	select {
	case <-s.ended:
		return nil
	case <-time.After(patient):
		return errors.New("PostgreSQL does not end")
	}
}

// Remove removes the folder of a server that has ended.
func (s *Server) Remove() error {
	err := os.Remove(s.dir + ".log")
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Archive lets the server keep its write-ahead log in a folder beside its own, as who recovers
// to a point in time sets it, and starts the server again. Copy and RecoverTo need it.
func (s *Server) Archive(ctx context.Context) error {
	err := os.Mkdir(s.archive(), 0o700)
	if err == nil {
		err = s.own(s.archive())
	}
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	for _, set := range []string{`archive_mode = on`, `archive_command = 'cp %p "` + s.archive() + `/%f"'`} {
		if err := s.query(ctx, "postgres", `ALTER SYSTEM SET `+set); err != nil {
			return err
		}
	}
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start(ctx)
}

func (s *Server) archive() string { return filepath.Join(s.dir, "archive") }

// Copy takes a base backup of a running server into a folder below parent. Its server is not
// started.
func (s *Server) Copy(ctx context.Context, parent string) (*Server, error) {
	copied, err := prepare(parent)
	if err != nil {
		return nil, err
	}
	if err := copied.run(ctx, "pg_basebackup", "-D", copied.dir, "-h", "127.0.0.1", "-p", s.port, "-U", name, "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return nil, errors.Join(err, copied.Remove())
	}
	return copied, nil
}

// RecoverTo starts a copy of a server with the state of a point in time, read from what that
// server has archived, and waits until it takes writes.
func (s *Server) RecoverTo(ctx context.Context, from *Server, at time.Time) error {
	signal := filepath.Join(s.dir, "recovery.signal")
	err := os.WriteFile(signal, nil, 0o600)
	if err == nil {
		err = s.own(signal)
	}
	if err != nil {
		return fmt.Errorf("let the server recover: %w", err)
	}
	conf, err := os.OpenFile(filepath.Join(s.dir, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("set the point in time: %w", err)
	}
	_, err = fmt.Fprintf(conf, "archive_mode = off\nrestore_command = 'cp \"%s/%%f\" %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = promote\n", from.archive(), at.UTC().Format("2006-01-02 15:04:05.999999-07"))
	if err = errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("set the point in time: %w", err)
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	return s.await(ctx, "the recovered server takes no writes", func(ctx context.Context) error {
		return s.query(ctx, "postgres", `SELECT NOT pg_is_in_recovery()`)
	})
}

// EndSegment ends the piece of the log that is written and waits until it is archived.
func (s *Server) EndSegment(ctx context.Context) error {
	if err := s.query(ctx, "postgres", `SELECT pg_switch_wal()`); err != nil {
		return err
	}
	return s.await(ctx, "the log is not archived", func(ctx context.Context) error {
		return s.query(ctx, "postgres", `SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver`)
	})
}
