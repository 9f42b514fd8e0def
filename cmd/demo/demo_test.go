package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cmd/internal/truth"

	"github.com/postern-io/postern/internal/ring"
)

// The demo starts itself again as cloud and agents; so does its test.
func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(child(role))
	}
	if os.Getenv(programEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// follower keeps the story, and does in it what a person would do with a second
// terminal: runs the command that listens to the chat.
type follower struct {
	t *testing.T

	mu    sync.Mutex
	story bytes.Buffer
	cmd   *exec.Cmd
	out   bytes.Buffer
}

func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, command, ok := strings.Cut(strings.TrimSpace(string(p)), "in a second terminal: "); ok && f.cmd == nil {
		args := strings.Fields(command)
		if program, err := exec.LookPath(args[0]); err == nil {
			f.cmd = exec.CommandContext(f.t.Context(), program, args[1:]...)
			f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.out
			if err := f.cmd.Start(); err != nil {
				f.t.Error(err)
				f.cmd = nil
			}
		}
	}
	return f.story.Write(p)
}

func (f *follower) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.story.String()
}

// heard ends the command, which has printed what was said; the cloud was killed
// meanwhile, so perhaps some of it twice.
func (f *follower) heard(said int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cmd == nil {
		f.t.Log("mosquitto_sub is missing (Debian's mosquitto-clients): nobody listened to the chat")
		return
	}
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait() // killed
	ids := map[int64]bool{}
	for line := range strings.Lines(f.out.String()) {
		var event struct {
			Type string `json:"type"`
			Data struct {
				Message struct {
					ID int64 `json:"message_id"`
				} `json:"message"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Type == "message.created" {
			ids[event.Data.Message.ID] = true
		}
	}
	require.Len(f.t, ids, said, "%s", f.out.String())
}

// playDay plays a day, on which all sides agree.
func playDay(t *testing.T, f flags, story interface {
	io.Writer
	fmt.Stringer
}) (got tally) {
	var out bytes.Buffer
	f.Once, f.JSON, f.Listen = true, true, "127.0.0.1:0"
	err := play(t.Context(), f, story, &out)
	require.NoError(t, err, "%s%s", story, &out)
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.True(t, got.agrees(), "%+v", got)
	require.GreaterOrEqual(t, got.Settled, 9)
	return got
}

// A whole day in real time, with killed processes and cut cables: about two
// minutes, most of them waiting.
func TestOneDayAgrees(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "a day takes two minutes of real time")
	story := &follower{t: t}
	got := playDay(t, flags{Seed: 7, Dir: t.TempDir()}, story)
	require.GreaterOrEqual(t, got.ShopVerified, 5, "orders that waited for the shop to recover")
	require.Equal(t, 1, got.ShopGivenUp, "as the shop asked")
	require.Equal(t, 1, got.DeadLetters, "the partner's test")
	require.Regexp(t, `Webhooks  http://127\.0\.0\.1:[0-9]+/console/webhooks`, story.String())
	require.Regexp(t, `shop       answers 500, then hangs: .*/console/webhooks\n`, story.String())
	require.Contains(t, story.String(), "shop       is well again")
	require.Contains(t, story.String(), "verified by the Standard Webhooks library")
	for _, line := range []string{`clerk      gives the order SR[0-9A-Z]+ to Swift Parcel as TPA-[0-9-]+\n`, `company    third_party_delivery\.created for TPA-[0-9-]+, signature verified`,
		`company    third_party_delivery\.packages_handed_over for TPA`} {
		require.Regexp(t, line, story.String())
	}
	require.Regexp(t, `Messages  http://127\.0\.0\.1:[0-9]+/console/chats`, story.String())
	require.Regexp(t, `talk along at http://127\.0\.0\.1:[0-9]+/console/chats/[0-9]+ or, as the recipient, http://127\.0\.0\.1:[0-9]+/track/[A-Z0-9]+\?k=[A-Za-z0-9_-]+#chat`, story.String())
	require.Regexp(t, `recipient  “Hello, when will you be here\?”`, story.String())
	require.Regexp(t, `driver     “In about ten minutes`, story.String())
	require.GreaterOrEqual(t, got.ChatStored, 10, "they go on while the day does")
	story.heard(got.ChatStored)
	require.Regexp(t, `wait at http://127\.0\.0\.1:[0-9]+/console/webhooks to be sent again`, story.String())
}

func TestCountsThatDoNotAgreeAreNoticed(t *testing.T) {
	t.Parallel()
	good := tally{Recorded: 5, Stored: 4, Gaps: 1, Settled: 1, WebhooksSent: 2, WebhooksVerified: 2, ShopSent: 1, ShopVerified: 1, ChatSaid: 2, ChatStored: 2,
		Verdict: truth.Verdict{Coils: 2, Authorised: 2}}
	require.True(t, good.agrees())
	for name, spoil := range map[string]func(*tally){
		"a lost record":         func(t *tally) { t.Stored-- },
		"a lost event":          func(t *tally) { t.Lost++ },
		"settled twice":         func(t *tally) { t.SettledTwice++ },
		"settled over a door":   func(t *tally) { t.SettledOpen++ },
		"a wrong door":          func(t *tally) { t.OpenedWrong++ },
		"an unverified webhook": func(t *tally) { t.WebhooksVerified-- },
		"a forged webhook":      func(t *tally) { t.WebhooksForged++ },
		"an unverified order":   func(t *tally) { t.ShopVerified-- },
		"a forged order":        func(t *tally) { t.ShopForged++ },
		"a lost message":        func(t *tally) { t.ChatStored-- },
		"a message said twice":  func(t *tally) { t.ChatStored++ },
		"a coil by itself":      func(t *tally) { t.Verdict.Authorised-- },
		"a crash of the cloud":  func(t *tally) { t.Crashes++ },
		"a broken rule":         func(t *tally) { t.Verdict.Findings = []truth.Finding{{Rule: "place"}} },
		"nothing happened":      func(t *tally) { *t = tally{} },
	} {
		bad := good
		spoil(&bad)
		require.False(t, bad.agrees(), name)
	}
}
