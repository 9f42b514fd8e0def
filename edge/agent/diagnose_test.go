package agent

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// taker is a cloud that takes answers.
type taker struct {
	mu     sync.Mutex
	answer func(try int) (status int, err error) // from 1; nil: 204
	tries  int
	files  [][]byte
	heads  []http.Header
	path   string
}

func (k *taker) RoundTrip(r *http.Request) (*http.Response, error) {
	file, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.tries++
	k.files, k.heads, k.path = append(k.files, file), append(k.heads, r.Header), r.Method+" "+r.URL.String()
	answer, try := k.answer, k.tries
	k.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		if status, err = answer(try); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

const answerPath = "/api/v1/devices/answers/c2VjcmV0LXRva2VuLXNlY3JldC10b2tlbg"

// diagnosing runs f in a bubble with an agent that sends its answers to k; nil: it knows no cloud.
func diagnosing(t *testing.T, k *taker, f func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.halt()
		b.change = func(c *Config) {
			c.Secrets.DeviceKey = bytes.Repeat([]byte{9}, 32)
			if k != nil {
				c.Origin = origin.New("https://cloud.example", k)
			}
		}
		b.start()
		b.sync("n1")
		time.Sleep(time.Minute) // a command must be younger than the store
		synctest.Wait()
		f(t, b)
	})
}

func (b *bench) orderDiagnosis(kind wire.CommandKind) wire.Command {
	b.t.Helper()
	c := wire.Command{CommandID: "d-1", DeviceCode: "CAB-1", IssuedAt: time.Now().UnixNano(), ExpiresAt: time.Now().Add(15 * time.Minute).UnixNano(), Kind: kind,
		Body: wire.MustEncode(wire.Diagnosis{Upload: wire.Upload{Path: answerPath, Until: time.Now().Add(30 * time.Minute).UnixNano(), Max: 4 << 20}})}
	(*handler)(b.agent).Command(b.seal(b.old, signed.ForCommand, c))
	synctest.Wait()
	return c
}

func TestBoardViewIsSent(t *testing.T) {
	t.Parallel()
	k := &taker{}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		c := b.orderDiagnosis(wire.CmdBoardView)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 1)
		require.Equal(t, "PUT https://cloud.example"+answerPath, k.path)
		sum := sha256.Sum256(k.files[0])
		require.Equal(t, diagnosis.Digest(sum), k.heads[0].Get(diagnosis.HeaderDigest))
		signature, err := base64.StdEncoding.DecodeString(k.heads[0].Get(diagnosis.HeaderSignature))
		require.NoError(t, err)
		require.True(t, signed.VerifyAnswer(b.agent.key.Public(), "CAB-1", answerPath, sum, signature))
		require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: wire.OutcomeDone, Digest: sum[:]}}, b.outcomes())
		got, err := diagnosis.DecodeBoards(bytes.NewReader(k.files[0]))
		require.NoError(t, err)
		require.Len(t, got.Boards, 1)
		require.Equal(t, []string{"A", "offline", "line_closed"}, []string{got.Boards[0].Name, got.Boards[0].State, got.Boards[0].Error})
		left, err := os.ReadDir(filepath.Join(b.dir, answerFolder))
		require.NoError(t, err)
		require.Empty(t, left)
		b.orderDiagnosis(wire.CmdBoardView)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 1, "a repeat")
	})
}

// An answer is sent again until the cloud says that it has it: the same bytes each time.
func TestAnswerIsSentUntilItIsTaken(t *testing.T) {
	t.Parallel()
	k := &taker{answer: func(try int) (int, error) {
		switch try {
		case 1:
			return 0, errors.New("no route")
		case 2:
			return http.StatusServiceUnavailable, nil
		case 3:
			return http.StatusTooManyRequests, nil
		case 4:
			return 0, errors.New("the answer was lost")
		}
		return http.StatusNoContent, nil
	}}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		b.orderDiagnosis(wire.CmdBoardView)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 5)
		for _, f := range k.files {
			require.Equal(t, k.files[0], f)
		}
		require.Len(t, b.outcomes(), 1)
		require.Equal(t, wire.OutcomeDone, b.outcomes()[0].Outcome)
	})
}

// Power goes while an answer is sent, and again once the cloud has it: the next start sends
// the same bytes, and there is one outcome.
func TestAnswerOutlivesPower(t *testing.T) {
	t.Parallel()
	k := &taker{}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		k.answer = func(try int) (int, error) {
			if try < 4 {
				b.stop()
				return 0, errors.New("the power is gone")
			}
			return http.StatusNoContent, nil
		}
		c := b.orderDiagnosis(wire.CmdSupportBundle)
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
			b.run.Wait()
			require.NotNil(t, b.agent.loop.State().Meta.Diagnosis)
			b.start()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 4)
		for _, f := range k.files {
			require.Equal(t, k.files[0], f)
		}
		sum := sha256.Sum256(k.files[0])
		require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: wire.OutcomeDone, Digest: sum[:]}}, b.outcomes())
		b.halt()
		b.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 4)
		require.Len(t, b.outcomes(), 1)
	})
}

// What is half written when power goes is made again.
func TestHalfAnAnswerIsNotSent(t *testing.T) {
	t.Parallel()
	k := &taker{answer: func(int) (int, error) { return http.StatusServiceUnavailable, nil }}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		b.orderDiagnosis(wire.CmdBoardView)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		b.halt()
		files, err := os.ReadDir(filepath.Join(b.dir, answerFolder))
		require.NoError(t, err)
		require.Len(t, files, 1)
		whole := filepath.Join(b.dir, answerFolder, files[0].Name())
		raw, err := os.ReadFile(whole)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(whole+".new", raw[:5], 0o600))
		require.NoError(t, os.Remove(whole))
		k.mu.Lock()
		k.answer, k.files = nil, nil
		k.mu.Unlock()
		b.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 1)
		_, err = diagnosis.DecodeBoards(bytes.NewReader(k.files[0]))
		require.NoError(t, err)
		require.Equal(t, wire.OutcomeDone, b.outcomes()[0].Outcome)
	})
}

func TestDiagnosisSaysWhatHinderedIt(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		k               *taker
		outcome, reason string
	}{
		"no cloud": {nil, wire.OutcomeRefused, wire.ReasonNoCloud},
		"gone":     {&taker{answer: func(int) (int, error) { return http.StatusGone, nil }}, wire.OutcomeFailed, wire.ReasonNotSent},
		"too long": {&taker{answer: func(int) (int, error) { return http.StatusRequestEntityTooLarge, nil }}, wire.OutcomeFailed, wire.ReasonNotSent},
		"moved":    {&taker{answer: func(int) (int, error) { return http.StatusFound, nil }}, wire.OutcomeFailed, wire.ReasonNotSent},
		"silent":   {&taker{answer: func(int) (int, error) { return 0, errors.New("no route") }}, wire.OutcomeFailed, wire.ReasonNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diagnosing(t, x.k, func(t *testing.T, b *bench) {
				c := b.orderDiagnosis(wire.CmdSupportBundle)
				time.Sleep(40 * time.Minute)
				synctest.Wait()
				require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: x.outcome, Reason: x.reason}}, b.outcomes())
			})
		})
	}
}

// unpack reads the files of a bundle.
func unpack(t *testing.T, file []byte) map[string]string {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	out, r := map[string]string{}, tar.NewReader(gz)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		out[h.Name] = string(raw)
	}
}

// Secrets, codes, deliveries and what people have written are planted everywhere that the
// agent knows, the log included: a bundle has none of them.
func TestSupportBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	k := &taker{}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		b.config(b.old, 1, nil)
		s := b.agent.loop.State()
		s.Doors, s.Deliveries, s.Codes = maps.Clone(s.Doors), map[string]locker.Delivery{}, map[uint64]wire.CodeEntry{}
		s.Doors[1] = locker.Door{Number: 1, Delivery: "LD-canary", Blocked: "canary: Mrs Canary's stain", Opening: ""}
		s.Deliveries["LD-canary"] = locker.Delivery{Ref: "LD-canary", Doors: map[edge.DoorNumber][]string{1: {"PK-canary"}}}
		s.Codes[1] = wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: []byte("canary-verifier-canary-verifier-"), DeliveryRef: "LD-canary", Active: wire.ActiveNow}
		s.Exceptions = map[string]locker.Exception{"x": {Exception: wire.Exception{ID: "x", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: 1, Evidence: "canary evidence"}}}
		require.NoError(t, b.agent.store.Commit(t.Context(), buffer.Change{Put: s.Dump(), Urgent: true}))
		b.halt()
		salt, key, secret := []byte("canary-salt-0123"), []byte("canary-code-key-canary-code-key-"), "canary-device-secret"
		change := b.change
		b.change = func(c *Config) {
			change(c)
			c.Secrets.CodeSalt, c.Secrets.CodeKey, c.Secrets.DeviceSecret = salt, key, secret
			c.Facts = func() map[string]any {
				return map[string]any{"settings": map[string]string{"kept": "yes", "slip": secret}}
			}
		}
		b.start()
		b.sync("n2")
		log := b.agent.log
		for _, text := range []string{secret, base64.StdEncoding.EncodeToString(key), hex.EncodeToString(salt), base64.RawURLEncoding.EncodeToString(b.agent.cfg.Secrets.DeviceKey), "https://cloud.example" + answerPath, "delivery/LD-canary", "package PK-canary"} {
			log.Warn("a slip", "err", errors.New(text))
		}
		log.Debug("canary debug")
		b.orderDiagnosis(wire.CmdSupportBundle)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, k.files, 1)
		files := unpack(t, k.files[0])
		require.Equal(t, []string{"support/about.json", "support/boards.json", "support/health.json", "support/log.jsonl", "support/settings.json", "support/status.json", "support/store.json"}, slices.Sorted(maps.Keys(files)))
		require.Contains(t, files["support/log.jsonl"], "a slip")
		require.Contains(t, files["support/settings.json"], `"kept": "yes"`)
		require.Contains(t, files["support/status.json"], `"in_use": true`)
		require.Contains(t, files["support/status.json"], `"blocked": true`)
		for name, text := range files {
			for _, canary := range []string{"canary", "Canary", tokenOf(answerPath), base64.StdEncoding.EncodeToString(key), hex.EncodeToString(salt), base64.RawURLEncoding.EncodeToString(b.agent.cfg.Secrets.DeviceKey)} {
				require.NotContains(t, strings.ReplaceAll(text, "CAB-1", ""), canary, name)
			}
		}
	})
}

// A log that fills everything leaves a bundle that the cloud takes, with the newest lines.
func TestSupportBundleFits(t *testing.T) {
	t.Parallel()
	k := &taker{}
	diagnosing(t, k, func(t *testing.T, b *bench) {
		for i := range 20_000 {
			sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			b.agent.log.Info("noise", "n", i, "sum", hex.EncodeToString(sum[:]))
		}
		require.LessOrEqual(t, len(b.agent.diagnoses.log.newest(1<<30)), maxLog)
		file, err := b.agent.diagnoses.bundle(64 << 10)
		require.NoError(t, err)
		require.LessOrEqual(t, len(file), 64<<10)
		require.Contains(t, unpack(t, file)["support/log.jsonl"], `"n":19999`)
		file, err = b.agent.diagnoses.bundle(1)
		require.NoError(t, err)
		require.Empty(t, unpack(t, file)["support/log.jsonl"], "it is said to be too long then")
	})
}
