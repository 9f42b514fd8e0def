package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// A cabinet answers by PUT at the address of its command, once, within the bounds; the staff
// reads the file by a signed address, and the token is in no log.
func TestCabinetAnswersADiagnosis(t *testing.T) {
	t.Parallel()
	var log written
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := newAgentWorld(t, Config{Log: logger, AccessLog: logger})
	var made enrolment
	require.Equal(t, 201, call(t, "POST", w.base+devicesPath, w.box.Admin.Token, cabinetBody("PIER-9"), &made))
	seed, public := signed.NewSeed()
	id := cloud.DeviceID(made.Device.ID)
	require.NoError(t, w.s.Store.Decide(t.Context(), id, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		d.UpKey = public
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
	}))
	key, err := signed.NewDeviceKey("PIER-9", seed)
	require.NoError(t, err)

	path := fmt.Sprintf("%s%s/%d/diagnoses", w.base, devicesPath, id)
	require.Equal(t, 401, call(t, "POST", path, "", map[string]any{"type": "board_view"}, nil))
	var asked struct {
		Diagnosis struct {
			ID int64 `json:"diagnosis_id"`
		}
	}
	require.Equal(t, 201, call(t, "POST", path, w.box.Admin.Token, map[string]any{"type": "support_bundle"}, &asked))
	var upload wire.Upload
	var command string
	require.NoError(t, w.s.Store.Look(t.Context(), func(v cloud.View) error {
		list, err := v.OpenCommands(id)
		require.Len(t, list, 1)
		var b wire.Diagnosis
		require.NoError(t, wire.Decode(list[0].Body, &b))
		upload, command = b.Upload, list[0].ID
		return err
	}))
	put := func(method, path string, file []byte, sign bool) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, w.base+path, bytes.NewReader(file))
		require.NoError(t, err)
		sum := sha256.Sum256(file)
		req.Header.Set(diagnosis.HeaderDigest, diagnosis.Digest(sum))
		if sign {
			req.Header.Set(diagnosis.HeaderSignature, base64.StdEncoding.EncodeToString(key.SignAnswer(path, sum)))
		}
		r, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	file := append([]byte{0x1f, 0x8b, 8}, bytes.Repeat([]byte{7}, 100_000)...)
	require.Equal(t, 405, put("POST", upload.Path, file, true))
	require.Equal(t, 404, put("PUT", upload.Path, file, false), "not signed")
	require.Equal(t, 404, put("PUT", upload.Path+"x", file, true))
	require.Equal(t, 422, put("PUT", upload.Path, []byte("text"), true))
	require.Equal(t, 413, put("PUT", upload.Path, make([]byte, diagnosis.MaxBundle+1), true))
	require.Equal(t, 200, put("PUT", upload.Path, file, true))
	require.Equal(t, 200, put("PUT", upload.Path, file, true), "the same again")
	require.Equal(t, 409, put("PUT", upload.Path, append(file, 1), true))
	require.NotContains(t, log.text(), strings.TrimPrefix(upload.Path, locker.AnswerPrefix))

	sum := sha256.Sum256(file)
	require.NoError(t, w.s.Store.Decide(context.Background(), id, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		work := w.s.Lockers.Begin(v, d, d.CreatedAt)
		if _, err := work.Apply(locker.Occurrence{Record: wire.Record{Kind: wire.KindCommandOutcome, Body: wire.MustEncode(wire.CommandOutcome{CommandID: command, Outcome: wire.OutcomeDone, Digest: sum[:]})}, OccurredAt: d.CreatedAt}); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{Unaudited: true}
		return ch, work.Finish(ch)
	}))
	var shown struct {
		Diagnosis struct {
			State   string
			FileURL string `json:"file_url"`
		}
	}
	require.Equal(t, 200, call(t, "GET", fmt.Sprintf("%s/api/v1/smart-lockers/diagnoses/%d", w.base, asked.Diagnosis.ID), w.box.Admin.Token, nil, &shown))
	require.Equal(t, "done", shown.Diagnosis.State)
	r, err := http.Get(w.base + shown.Diagnosis.FileURL)
	require.NoError(t, err)
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, file, got)
	require.Equal(t, diagnosis.MIME, r.Header.Get("Content-Type"))
	require.Contains(t, r.Header.Get("Content-Disposition"), "attachment")
}
