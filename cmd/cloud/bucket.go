package main

import (
	"os"
	"strings"

	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// bucketSettings name a bucket of an S3-compatible server. It must exist and may be
// private.
type bucketSettings struct {
	URL        string `yaml:"url" json:"url"`
	Name       string `yaml:"name" json:"name"`
	Region     string `yaml:"region" json:"region"`
	Prefix     string `yaml:"prefix" json:"prefix"` // of the names of all objects
	KeyID      string `yaml:"key_id" json:"key_id"`
	SecretFile string `yaml:"secret_file" json:"secret_file"`
	// SecretEnv names a variable of the environment in place of a file.
	SecretEnv string `yaml:"secret_env" json:"secret_env"`
	PathStyle bool   `yaml:"path_style" json:"path_style"` // the bucket's name is in the path of addresses
}

// check reads the secret and gives the bucket, nil when none is set. name is that of the
// setting. Nothing is connected to.
func (b bucketSettings) check(name string, bad func(string, ...any)) *object.BucketConfig {
	if b == (bucketSettings{}) {
		return nil
	}
	say := func(format string, a ...any) { bad(name+"."+format, a...) }
	out := &object.BucketConfig{URL: b.URL, Name: b.Name, Region: b.Region, Prefix: b.Prefix, KeyID: b.KeyID, PathStyle: b.PathStyle}
	switch {
	case !isURL(b.URL, "http", "https"):
		say("url: use the server's address, such as https://s3.example; the key goes into key_id and secret_file")
	case b.Name == "" || strings.ContainsAny(b.Name, "/ "):
		say("name %q: name the bucket", b.Name)
	case b.KeyID == "":
		say("key_id: set the id of the key")
	case (b.SecretFile == "") == (b.SecretEnv == ""):
		say("secret_file: set either secret_file or secret_env")
	case b.SecretEnv != "":
		if out.Secret = os.Getenv(b.SecretEnv); out.Secret == "" {
			say("secret_env: the variable %s is empty", b.SecretEnv)
		}
	default:
		raw, err := cli.ReadSecret(b.SecretFile)
		if err != nil {
			say("secret_file: %w", err)
			break
		}
		if out.Secret = strings.TrimSpace(string(raw)); out.Secret == "" {
			say("secret_file: %s is empty", b.SecretFile)
		}
	}
	return out
}
