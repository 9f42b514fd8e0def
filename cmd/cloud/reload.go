package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/postern-io/postern/cloud/server"
)

// reloader applies changed settings to a server that runs. One goroutine uses it.
type reloader struct {
	opt     options
	srv     *server.Server
	logs    *logs
	started settings
	// atStart and now are the values of settings by name, as the server was built and as
	// they were read last. They hold secrets.
	atStart, now map[string]string
}

func newReloader(opt options, s settings, srv *server.Server, logs *logs) (*reloader, error) {
	values, err := valuesOf(s)
	return &reloader{opt: opt, srv: srv, logs: logs, started: s, atStart: values, now: values}, err
}

// run reads the settings again at each signal, until ctx ends.
func (r *reloader) run(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if err := r.reload(); err != nil {
			r.logs.main.Error("the settings that were read again are not used", "err", err)
		}
	}
}

// reload reads file and environment again, applies what can change while the server runs
// and names the rest. On error nothing has changed.
func (r *reloader) reload() error {
	next, err := load(r.opt)
	if err != nil {
		return err
	}
	values, err := valuesOf(next)
	if err != nil {
		return err
	}
	if err := r.srv.Change(next.server(r.logs.main)); err != nil {
		return err
	}
	if err := r.logs.apply(next); err != nil {
		return err
	}
	names := maps.Clone(values)
	maps.Copy(names, r.atStart)
	maps.Copy(names, r.now)
	waiting := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch live := changesLive(name, r.started, next); {
		case live && r.now[name] != values[name]:
			r.logs.main.Info("setting applied", "setting", name)
		case !live && r.atStart[name] != values[name]:
			waiting++
			r.logs.main.Warn("setting needs a restart", "setting", name)
		}
	}
	r.now = values
	r.logs.main.Info("settings read again", "need_restart", waiting)
	return nil
}

// changesLive reports whether a server that was started with some settings takes another
// value of one, as server.Change does.
func changesLive(name string, started, next settings) bool {
	section, _, _ := strings.Cut(name, ".")
	switch {
	case section == "connections":
		return true
	case section == "mail":
		return started.Mail.server != nil && next.Mail.server != nil
	case section == "push":
		return started.Push.URL != "" && next.Push.URL != ""
	case section == "sms":
		return started.SMS.URL != "" && next.SMS.URL != ""
	}
	switch name {
	case "log_level", "access_log", "webhook.allow_networks", "webhook.allow_ports", "webhook.http", "webhook.deny_hosts":
		return true
	case "tls.cert", "tls.key":
		return started.TLS.Cert != "" && next.TLS.Cert != ""
	case "admin.token_file", "admin.token_env":
		return started.Admin.token != "" && next.Admin.token != ""
	}
	return false
}

// valuesOf is each setting's value by its name in the file, with what the file that it
// names holds when that is a secret.
func valuesOf(s settings) (map[string]string, error) {
	raw, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("compare settings: %w", err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("compare settings: %w", err)
	}
	out := map[string]string{}
	addValues(out, "", tree)
	out["admin.token_file"] += s.Admin.token
	out["push.secret_file"] += s.Push.secret
	out["sms.secret_file"] += s.SMS.secret
	out["webhook.proxy_secret_file"] += s.proxyLogin
	if s.Mail.server != nil {
		out["mail.password_file"] += s.Mail.server.Password
	}
	if s.bucket != nil {
		out["bucket.secret_file"] += s.bucket.Secret
	}
	if s.backup.Bucket != nil {
		out["backup.bucket.secret_file"] += s.backup.Bucket.Secret
	}
	for _, p := range s.providers {
		out["sign_in"] += p.Secret
	}
	return out, nil
}

// addValues adds the leaves of a tree. A list is a leaf.
func addValues(to map[string]string, prefix string, tree map[string]any) {
	for name, v := range tree {
		if below, ok := v.(map[string]any); ok {
			addValues(to, prefix+name+".", below)
			continue
		}
		to[prefix+name] = fmt.Sprint(v)
	}
}
