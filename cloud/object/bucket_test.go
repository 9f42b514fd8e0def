package object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object/objecttest"
)

// Whatever the server does, a file is there whole or not at all, and what was said to be
// there is there.
func TestServerInTroubleKeepsFilesWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	f := onBucket(t)
	body := append([]byte("%PDF-1.7\n"), make([]byte, 300_000)...)
	for i := range body[9:] {
		body[9+i] = byte(r.Uint32())
	}
	kept := map[string]bool{}
	for _, fault := range []objecttest.Fault{objecttest.Status500, objecttest.Slow, objecttest.CutBody, objecttest.CutAnswer} {
		for times := range 3 { // in passing, and for good
			left := times + 1
			if times == 2 {
				left = 1000
			}
			f.server.SetFault(func(q *http.Request) objecttest.Fault {
				if q.Method != http.MethodPut || left == 0 {
					return objecttest.None
				}
				left--
				return fault
			})
			limit := 4 * time.Second
			if times == 2 {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			s, err := f.Put(ctx, "proof", bytes.NewReader(body), 1<<20, cloud.PDF)
			cancel()
			if err == nil {
				kept[s.Path] = true
			}
			if times == 0 && fault != objecttest.CutAnswer {
				require.NoError(t, err, "one fault is passed over: %v", fault)
			}
			if times == 2 && fault != objecttest.CutAnswer {
				require.Error(t, err, "%v", fault)
			}
			if err != nil {
				require.NotContains(t, err.Error(), objecttest.Secret)
			}
		}
	}
	f.server.SetFault(nil)
	for _, name := range f.names(t) {
		stored, _ := storedPath(name)
		x, err := f.Get(t.Context(), stored)
		require.NoError(t, err)
		raw, err := io.ReadAll(x)
		require.NoError(t, errors.Join(err, x.Close()))
		require.True(t, bytes.Equal(body, raw), "whole")
		delete(kept, stored)
	}
	require.Empty(t, kept, "what was said to be there")

	// Reading: an answer that ends early is an error, never a shorter file.
	s, err := f.Put(t.Context(), "proof", bytes.NewReader(body), 1<<20, cloud.PDF)
	require.NoError(t, err)
	f.server.SetFault(func(q *http.Request) objecttest.Fault {
		if q.Method == http.MethodGet {
			return objecttest.CutAnswer
		}
		return objecttest.None
	})
	x, err := f.Get(t.Context(), s.Path)
	if err == nil {
		_, err = io.ReadAll(x)
		require.NoError(t, x.Close())
	}
	require.Error(t, err)
	require.NotErrorIs(t, err, cloud.ErrNotFound)
	f.server.SetFault(func(*http.Request) objecttest.Fault { return objecttest.Status500 })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = f.Get(ctx, s.Path)
	require.Error(t, err)
	require.NotErrorIs(t, err, cloud.ErrNotFound, "a server in trouble has not lost the file")
	_, err = f.Sweep(ctx, func(context.Context, string) ([]string, error) { return nil, nil })
	require.Error(t, err)
	f.server.SetFault(nil)
	x, err = f.Get(t.Context(), s.Path)
	require.NoError(t, err)
	require.NoError(t, x.Close())
}

// An object of many parts is there when the last part is; parts of one that was cut off
// go later.
func TestObjectOfManyPartsIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := onBucket(t)
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	fill := func(w io.Writer) error {
		for range 35 {
			if _, err := w.Write(block); err != nil {
				return err
			}
		}
		return nil
	}
	parts := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.server.SetFault(func(q *http.Request) objecttest.Fault {
		if q.Method == http.MethodPut && q.URL.Query().Has("partNumber") {
			if parts++; parts > 1 {
				cancel()
				return objecttest.CutBody
			}
		}
		if q.Method == http.MethodDelete {
			return objecttest.Status500 // nothing tidies up
		}
		return objecttest.None
	})
	_, err := Write(ctx, f.store, "exports/big", fill)
	require.Error(t, err)
	require.Greater(t, parts, 1)
	f.server.SetFault(nil)
	require.Empty(t, f.names(t))
	n, err := f.store.Clean(t.Context(), time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = f.store.Clean(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = f.store.Clean(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Zero(t, n)

	size, err := Write(t.Context(), f.store, "exports/big", fill)
	require.NoError(t, err)
	require.EqualValues(t, 35*len(block), size)
	r, size, err := f.store.Open(t.Context(), "exports/big")
	require.NoError(t, err)
	require.EqualValues(t, 35*len(block), size)
	got, err := io.ReadAll(r)
	require.NoError(t, errors.Join(err, r.Close()))
	require.True(t, bytes.Equal(bytes.Repeat(block, 35), got))
}

func TestBucketThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	s := objecttest.Start(t)
	good := bucketOf(t, s)
	for want, change := range map[string]func(*BucketConfig){
		"refuses the key":    func(c *BucketConfig) { c.Secret = "hunter3-hunter3" },
		"(403 ":              func(c *BucketConfig) { c.KeyID = "unknown" },
		"there is no bucket": func(c *BucketConfig) { c.Name = "other" },
		"http://HOST":        func(c *BucketConfig) { c.URL = "s3.example" },
		"https://HOST":       func(c *BucketConfig) { c.URL = "https://me:hunter3@s3.example" },
		"must be set":        func(c *BucketConfig) { c.KeyID = "" },
	} {
		c := good
		change(&c)
		_, err := OpenBucket(t.Context(), c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter3")
	}
	away := good
	away.URL = "http://127.0.0.1:1"
	b, err := OpenBucket(t.Context(), away)
	require.NoError(t, err, "a server that is away for now")
	defer b.Close()
	_, _, err = b.Open(t.Context(), "exports/x")
	require.Error(t, err)
	require.NotErrorIs(t, err, cloud.ErrNotFound)
	require.False(t, strings.Contains(err.Error(), objecttest.Secret))
}
