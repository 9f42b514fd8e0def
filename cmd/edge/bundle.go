package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/internal/bundle"
	"github.com/postern-io/postern/internal/wholefile"
)

// supportBundle collects what helps to understand a cabinet. It changes
// nothing: of a running agent it asks the local page, a store that no process has
// open it opens for reading.
func supportBundle(ctx context.Context, s settings, file string, stdout io.Writer) error {
	b := bundle.New(time.Now().UTC())
	b.AddAbout("edge", cli.Version())
	b.AddFacts(programFacts(s))
	b.AddJSON("store.json", storeFacts(filepath.Join(s.Data, "edge.db")))
	b.AddJSON("page.json", askPage(ctx, s))
	raw, err := b.Bytes()
	if err != nil {
		return err
	}
	if err := wholefile.Replace(file, raw); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "wrote", file)
	return err
}

// programFacts are what this program knows of itself, without secrets: for each bundle, those
// that the cloud asks for too.
func programFacts(s settings) map[string]any {
	s.Kiosk.Operator = kiosk.Operator{} // how a person is reached
	return map[string]any{
		"settings": s, // it names the secrets' file, and holds none
		"secrets":  secretsFacts(s.Secrets),
		"files":    files(s.Data),
		"versions": versionFacts(s),
	}
}

// secretsFacts says which secrets there are, and none of them.
func secretsFacts(name string) map[string]any {
	s, err := readSecrets(name)
	out := map[string]any{"file": name, "set": err == nil}
	if err != nil {
		out["problem"] = err.Error()
		return out
	}
	var keys, brokers []string
	for _, k := range s.Keys {
		keys = append(keys, hex.EncodeToString(k.ID))
	}
	for _, b := range s.Brokers {
		if u, err := url.Parse(b); err == nil {
			brokers = append(brokers, u.Scheme+"://"+u.Host)
		}
	}
	out["device_key"] = len(s.DeviceKey) > 0 // whether there is one
	out["device_code"], out["prefix"], out["brokers"], out["pinned_key_ids"] = s.DeviceCode, s.Prefix, brokers, keys
	return out
}

// versionFacts says which programs of the agent there are.
func versionFacts(s settings) any {
	if _, err := os.Stat(versionsFolder(s)); err != nil {
		return map[string]string{"problem": err.Error()} // none was ever installed, and none is made here
	}
	v, err := openVersions(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return map[string]string{"problem": err.Error()}
	}
	return v.Report()
}

type fileFact struct {
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Mode    string    `json:"mode"`
	Changed time.Time `json:"changed"`
}

func files(dir string) any {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return map[string]string{"problem": err.Error()}
	}
	out := []fileFact{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			out = append(out, fileFact{e.Name(), info.Size(), info.Mode().String(), info.ModTime().UTC()})
		}
	}
	return out
}

type bucketFact struct {
	Entries   int `json:"entries"`
	BytesUsed int `json:"bytes_used"`
}

// storeFacts counts what the store file holds, the segments of a lane together.
func storeFacts(path string) (out map[string]any) {
	out = map[string]any{}
	defer func() {
		if p := recover(); p != nil { // a damaged file
			out["problem"] = fmt.Sprint(p)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: 100 * time.Millisecond})
	if err != nil {
		out["problem"] = "not read (the running agent has it open, or there is none): " + err.Error()
		return out
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		out["bytes"], out["page_bytes"] = tx.Size(), db.Info().PageSize
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			key := "bucket " + string(name)
			if l, ok := buffer.LaneOf(name); ok {
				key = fmt.Sprintf("bucket lane%d", l)
			}
			st, sum := b.Stats(), bucketFact{}
			if before, ok := out[key].(bucketFact); ok {
				sum = before
			}
			sum.Entries += st.KeyN
			sum.BytesUsed += st.LeafInuse + st.BranchInuse
			out[key] = sum
			return nil
		})
	})
	if err != nil {
		out["problem"] = err.Error()
	}
	return out
}

// askPage asks a running agent for what staff see.
func askPage(ctx context.Context, s settings) any {
	raw, err := readPage(ctx, s)
	if err != nil {
		return map[string]string{"problem": err.Error()}
	}
	return json.RawMessage(raw)
}

func readPage(ctx context.Context, s settings) ([]byte, error) {
	if s.Kiosk.Listen == "" {
		return nil, errors.New("there is no local page (kiosk.listen is empty)")
	}
	key, err := kiosk.ReadKey(s.Data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Kiosk.Listen+"/api/staff", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	client := &http.Client{Transport: &http.Transport{}} // no proxy: it is this machine
	defer client.CloseIdleConnections()
	r, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil && (r.StatusCode != http.StatusOK || !json.Valid(raw)) {
		err = fmt.Errorf("the local page answered %d", r.StatusCode)
	}
	return raw, err
}
