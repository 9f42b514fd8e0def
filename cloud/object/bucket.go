package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/postern-io/postern/cloud"
)

// BucketConfig says where a bucket of an S3-compatible server is and who uses it.
type BucketConfig struct {
	URL           string // of the server, http(s)://HOST[:PORT]
	Name          string // of the bucket, which must exist
	Region        string // empty: us-east-1
	Prefix        string // of all names, empty or with a slash at its end
	KeyID, Secret string
	// PathStyle puts the bucket's name into the path of addresses and not into the name
	// of the host. Without it that is so for servers other than those of the large
	// providers.
	PathStyle bool
	// Spool is a folder for what is being written, until it is sent; empty: the
	// system's for temporary files.
	Spool string
}

// Limits of the time that requests take.
const (
	bucketConnect = 5 * time.Second
	bucketAnswer  = 30 * time.Second // the begin of an answer
	bucketRetries = 4                // tries of a request, with growing pauses
	// An object may take bucketBase and its size at bucketPace bytes a second.
	bucketBase = time.Minute
	bucketPace = 64 << 10
)

// Bucket keeps objects in an S3-compatible bucket, which may be private.
// Drafts are local files, which are sent when they are published.
type Bucket struct {
	cfg    BucketConfig
	client *minio.Core
	idle   func() // closes idle connections
}

var _ Store = (*Bucket)(nil)

// OpenBucket uses a bucket. It asks for the bucket once and fails when the server refuses
// that; a server that does not answer is no error, so that a start does not depend on it.
// No error holds the secret.
func OpenBucket(ctx context.Context, cfg BucketConfig) (*Bucket, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("open bucket: the URL must be http://HOST:PORT or https://HOST")
	}
	if cfg.Name == "" || cfg.KeyID == "" || cfg.Secret == "" {
		return nil, errors.New("open bucket: the name, the key's id and its secret must be set")
	}
	if cfg.Prefix != "" && !strings.HasSuffix(cfg.Prefix, "/") {
		cfg.Prefix += "/"
	}
	if cfg.Spool != "" {
		if err := os.MkdirAll(cfg.Spool, 0o700); err != nil {
			return nil, fmt.Errorf("open bucket: %w", err)
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: bucketConnect}).DialContext, TLSHandshakeTimeout: bucketConnect,
		ResponseHeaderTimeout: bucketAnswer, ExpectContinueTimeout: time.Second, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true}
	lookup := minio.BucketLookupAuto
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(cfg.KeyID, cfg.Secret, ""), Secure: u.Scheme == "https", Transport: transport,
		Region: cmp.Or(cfg.Region, "us-east-1"), BucketLookup: lookup, MaxRetries: bucketRetries})
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b := &Bucket{cfg: cfg, client: client, idle: transport.CloseIdleConnections}
	return b, b.check(ctx)
}

// check fails when the server answers that the bucket cannot be used.
func (b *Bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*bucketConnect)
	defer cancel()
	found, err := b.client.BucketExists(ctx, b.cfg.Name)
	switch status := minio.ToErrorResponse(err).StatusCode; {
	case err == nil && !found:
		return fmt.Errorf("open bucket: there is no bucket %s at %s; make it first", b.cfg.Name, b.cfg.URL)
	case err != nil && status >= 400 && status < 500:
		return fmt.Errorf("open bucket %s at %s: the server refuses the key (%d %s)", b.cfg.Name, b.cfg.URL, status, minio.ToErrorResponse(err).Code)
	}
	return nil
}

// Close ends idle connections.
func (b *Bucket) Close() error {
	b.idle()
	return nil
}

func (b *Bucket) key(name string) string { return b.cfg.Prefix + name }

type bucketDraft struct {
	*os.File
	bucket *Bucket
}

// Draft begins a local file without a name, where the system has such.
func (b *Bucket) Draft() (Draft, error) {
	f, err := os.CreateTemp(b.cfg.Spool, "draft-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // it lives until it is closed; where that cannot be, Discard removes it
	return &bucketDraft{f, b}, nil
}

// Publish sends the file with a digest that the server checks. A server shows an object
// when it has received all of it.
func (d *bucketDraft) Publish(ctx context.Context, name string) error {
	size, err := d.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bucketBase+time.Duration(size/bucketPace)*time.Second)
	defer cancel()
	_, err = d.bucket.client.Client.PutObject(ctx, d.bucket.cfg.Name, d.bucket.key(name), d.File, size,
		minio.PutObjectOptions{ContentType: "application/octet-stream", SendContentMd5: true, NumThreads: 2})
	return err
}

// Discard removes the local file.
func (d *bucketDraft) Discard() error {
	err := d.Close()
	_ = os.Remove(d.Name())
	return err
}

// Open asks for an object. The context bounds the time to the begin of the answer; the
// answer may be read after it ended.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	body, info, _, err := b.client.GetObject(reading, b.cfg.Name, b.key(name), minio.GetObjectOptions{})
	stop()
	if err != nil {
		cancel()
		if missing(err) {
			err = cloud.ErrNotFound
		}
		return nil, 0, err
	}
	end := time.AfterFunc(bucketBase+time.Duration(info.Size/bucketPace)*time.Second, cancel)
	return &bucketReader{ReadCloser: body, left: info.Size, end: func() { end.Stop(); cancel() }}, info.Size, nil
}

func missing(err error) bool { return minio.ToErrorResponse(err).StatusCode == http.StatusNotFound }

// bucketReader reads an answer; one that ends early is an error.
type bucketReader struct {
	io.ReadCloser
	left int64
	end  func()
}

func (r *bucketReader) Read(to []byte) (int, error) {
	n, err := r.ReadCloser.Read(to)
	if r.left -= int64(n); errors.Is(err, io.EOF) && r.left != 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (r *bucketReader) Close() error {
	err := r.ReadCloser.Close()
	r.end()
	return err
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketBase)
	defer cancel()
	if err := b.client.Client.RemoveObject(ctx, b.cfg.Name, b.key(name), minio.RemoveObjectOptions{}); err != nil && !missing(err) {
		return err
	}
	return nil
}

// List asks for pages of names.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range b.client.Client.ListObjectsIter(ctx, b.cfg.Name, minio.ListObjectsOptions{Prefix: b.key(prefix), Recursive: true}) {
			if o.Err != nil {
				yield(Object{}, o.Err)
				return
			}
			if !yield(Object{strings.TrimPrefix(o.Key, b.cfg.Prefix), o.Size, o.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Object{}, err)
		}
	}
}

// Clean ends uploads in parts that were never completed.
func (b *Bucket) Clean(ctx context.Context, before time.Time) (removed int, err error) {
	var key, id string
	for {
		page, err := b.client.ListMultipartUploads(ctx, b.cfg.Name, b.cfg.Prefix, key, id, "", 1000)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload { // how some servers say that there are none
			return removed, nil
		}
		if err != nil {
			return removed, err
		}
		for _, u := range page.Uploads {
			if u.Initiated.After(before) {
				continue
			}
			if err := b.client.AbortMultipartUpload(ctx, b.cfg.Name, u.Key, u.UploadID); err != nil && !missing(err) {
				return removed, err
			}
			removed++
		}
		if !page.IsTruncated || page.NextKeyMarker == "" {
			return removed, nil
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
