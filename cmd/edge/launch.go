package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/update"
)

// envLauncher names the descriptor by which a launched agent reports that it is healthy.
const (
	envLauncher = "POSTERN_LAUNCHER_FD"
	launcherFD  = 3 // the first behind standard error
)

// launcherPipe is the way to the launcher, nil when the agent was not launched by one.
func launcherPipe() *os.File {
	fd, err := strconv.Atoi(os.Getenv(envLauncher))
	if err != nil || fd != launcherFD {
		return nil
	}
	_ = os.Unsetenv(envLauncher)
	return os.NewFile(launcherFD, "launcher")
}

// Times of a launch.
const (
	trialTime  = 30 * time.Minute // in which a program on trial has to be healthy
	stopTime   = 15 * time.Second // that an agent has to end; the service has 20 s for both
	startPause = time.Second      // before a program on trial is started again
	keepPause  = time.Minute      // before a report that could not be kept is kept again
)

// launcher runs the agent's programs, one at a time, and stays their parent: it is what goes
// back to the program before, on machines without a service manager, too.
type launcher struct {
	versions *update.Versions
	packaged string   // path of this program
	args     []string // of each agent
	trial    time.Duration
	pause    time.Duration
	log      *slog.Logger

	stdout, stderr io.Writer
}

// launch runs the cabinet by the newest program that works, until ctx ends. Without secrets
// that can be read it is this program, which says what is wrong with them.
func launch(ctx context.Context, s settings, args []string, log *slog.Logger, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	l := &launcher{packaged: self, args: args, trial: trialTime, pause: startPause, log: log, stdout: stdout, stderr: stderr}
	if l.versions, err = openVersions(s, log); err != nil {
		log.Error("the packaged program is started", "err", err)
		_, err := l.runAgent(ctx, update.Choice{Version: cli.Version()})
		return err
	}
	return l.run(ctx)
}

// errTrialOver says that a program on trial was not healthy in time.
var errTrialOver = errors.New("it did not report in time that it is healthy")

// run runs one program after the other while they are on trial, or ended for an update. The
// end of another one is the end of the launch: the service starts it again.
func (l *launcher) run(ctx context.Context) error {
	for {
		c := l.versions.Choose()
		proven, err := l.runAgent(ctx, c)
		var notStarted *startError
		switch {
		case !c.Trial || proven:
			if errors.As(err, &notStarted) && c.Path != "" { // no program is no answer
				l.log.Error("the program is not started, the packaged one is", "version", c.Version, "err", err)
				_, err = l.runAgent(ctx, update.Choice{Version: cli.Version()})
			}
			if trial := l.versions.Report().Trial; err != nil || ctx.Err() != nil || trial == "" {
				return err
			}
			l.log.Info("the agent ended for an update", "version", c.Version)
		case ctx.Err() != nil:
			return errors.Join(err, l.versions.Withdraw(c))
		case errors.As(err, &notStarted) && isPassing(err):
			l.log.Error("an update is not started now", "version", c.Version, "err", err)
			if err := l.versions.Withdraw(c); err != nil {
				l.log.Error("keep that an update was not started", "err", err)
			}
		case errors.Is(err, errTrialOver) || errors.As(err, &notStarted):
			if err := l.versions.GiveUp(c, err.Error()); err != nil {
				l.log.Error("keep that an update is given up", "err", err)
			}
		default:
			l.log.Error("an update ended before it was healthy", "version", c.Version, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.pause):
		}
	}
}

// isPassing reports whether a program was not started for a reason that lies in the machine
// of this moment.
func isPassing(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.ETXTBSY, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// startError says that a program could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return fmt.Sprintf("start the agent: %v", e.err) }
func (e *startError) Unwrap() error { return e.err }

// runAgent runs a program until it ends, ctx ends, or its trial is over. proven is whether
// it was on trial and is no more. One that was asked to end and does is no error.
func (l *launcher) runAgent(ctx context.Context, c update.Choice) (proven bool, err error) {
	path := c.Path
	if path == "" {
		path = l.packaged
	}
	reports, report, err := os.Pipe()
	if err != nil {
		return false, &startError{err}
	}
	defer reports.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, path, l.args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = l.stdout, l.stderr, []*os.File{report}
	cmd.Env = append(os.Environ(), envLauncher+"="+strconv.Itoa(launcherFD))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	// The agent ends with the thread that started it, where a system can do that: two of
	// them would fight for the boards.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(cmd)
	l.log.Info("the agent is started", "version", c.Version, "path", path, "on_trial", c.Trial)
	err = cmd.Start()
	_ = report.Close()
	if err != nil {
		return false, &startError{err}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if c.Trial {
		proven, err = l.watchTrial(c, reports, done, cancel)
	} else {
		err = <-done
	}
	if cause := context.Cause(ctx); cause != nil {
		var exit *exec.ExitError
		if errors.Is(cause, errTrialOver) {
			return proven, errTrialOver
		}
		if errors.Is(err, context.Canceled) || errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
			err = nil // it ended by the signal itself
		}
	}
	if err != nil {
		err = fmt.Errorf("the agent ended: %w", err)
	}
	return proven, err
}

// lastReport bounds how long a report is waited for of a program that has ended: it stands
// in the pipe, unless a program that it started holds the pipe open.
const lastReport = time.Second

// watchTrial waits for the end of a program on trial, and for its report, which may be read
// only after its end.
func (l *launcher) watchTrial(c update.Choice, reports *os.File, done <-chan error, cancel context.CancelCauseFunc) (proven bool, err error) {
	report := make(chan bool, 1)
	go func() {
		n, _ := reports.Read(make([]byte, 1))
		report <- n == 1
	}()
	healthy := false
	over := time.NewTimer(l.trial)
	defer over.Stop()
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case err := <-done:
			if report != nil {
				_ = reports.SetReadDeadline(time.Now().Add(lastReport))
				healthy = <-report
			}
			return proven || healthy && l.confirm(c), err
		case <-over.C:
			cancel(errTrialOver)
			return false, <-done
		case healthy = <-report:
			report = nil
			if healthy {
				over.Stop()
				again.Reset(0)
			}
		case <-again.C:
			if proven = l.confirm(c); !proven {
				again.Reset(keepPause)
			}
		}
	}
}

// confirm keeps that an update is healthy, and reports whether it could.
func (l *launcher) confirm(c update.Choice) bool {
	if err := l.versions.Confirm(c); err != nil {
		l.log.Error("keep that an update is healthy", "err", err)
		return false
	}
	l.log.Info("the update is healthy", "version", c.Version)
	return true
}
