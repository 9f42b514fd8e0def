package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsThatAreMostLikelyAMistakeWarn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a proxy before it":            {"base_url: https://cloud.example\nmqtt: {listen: '127.0.0.1:11900'}", []string{"cabinets on other computers cannot connect"}},
		"and no port of its own":       {"base_url: https://cloud.example\nmqtt: {brokers: ['tcp://localhost:1', 'ws://[::1]:2/mqtt']}", []string{"tcp://localhost:1, ws://[::1]:2/mqtt"}},
		"brokers elsewhere":            {"base_url: https://cloud.example\nmqtt: {brokers: ['tcp://127.0.0.1:1', 'ssl://cloud.example:8883']}", nil},
		"this computer alone":          {"base_url: http://localhost:8080", nil},
		"no address":                   {"data: x", nil},
		"plain HTTP on all interfaces": {"listen: :8080", []string{`plain HTTP is served beyond this computer`}},
		"on one of them":               {"listen: '10.0.0.4:8080'", []string{`listen "10.0.0.4:8080"`}},
		"behind a proxy that is named": {"listen: :8080\nproxies: {trusted: [10.0.0.0/8]}", nil},
		"both":                         {"listen: :8080\nbase_url: https://cloud.example", []string{"cabinets on other", "plain HTTP"}},
	} {
		s, err := load(options{Config: file(t, c.text)})
		require.NoError(t, err, name)
		got := s.warnings()
		require.Len(t, got, len(c.want), name)
		for i, want := range c.want {
			require.Contains(t, got[i], want, name)
		}
	}
	s := defaults()
	s.Listen, s.Roles, s.Database = ":8080", "edge", "postgres://db/x"
	require.NoError(t, s.check())
	require.Empty(t, s.warnings(), "it serves no page and enrols no cabinet")
	s = defaults()
	s.Listen, s.TLS.Listen = ":80", ":443"
	require.Empty(t, s.warnings(), "plain HTTP leads to HTTPS")
}

func TestACheckWarnsAndIsInOrder(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-check", "-data", t.TempDir(), "-listen", ":8080"}, strings.NewReader(""), &out, &errs))
	require.True(t, strings.HasPrefix(out.String(), "in order: "))
	require.Equal(t, 1, strings.Count(errs.String(), "warning: plain HTTP"))
}

func TestACheckRefusesWhatCannotStart(t *testing.T) {
	t.Parallel()
	plain := file(t, "x")
	for want, args := range map[string][]string{
		`listen "127.0.0.1:99999": use a port from 1 to 65535`:   {"-listen", "127.0.0.1:99999"},
		`mqtt.listen "127.0.0.1:-1": use a port`:                 {"-mqtt-listen", "127.0.0.1:-1"},
		`such as %40 for @`:                                      {"-database", "postgres://u:hunter2/x@db/x"},
		`database: the address cannot be read`:                   {"-database", "postgres://u:hunter2%zz@db/x"},
		`in user and password`:                                   {"-database", "postgres://u:hunter2[x@db:5432/x"},
		plain + " is a file; name a folder":                      {"-data", filepath.Join(plain, "below")},
		"data: " + plain + " cannot be made: " + plain + " is a": {"-data", plain},
		"cannot be written":                                      {"-data", "/proc/none/data"},
	} {
		_, err := program(t, append(args, "-check")...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, password := range []string{"hunter2/x", "hunt@er2/x", "12/hunter2", "12?hunter2", "12#hunter2", "hunter2#x", "hunt[er2", "hunter2%", "hunt er2"} {
		err := checkDatabase("postgres://u:" + password + "@127.0.0.1:5432/x")
		require.ErrorContains(t, err, "%40 for @", password)
		require.NotContains(t, err.Error(), "hunt", password)
	}
	for _, address := range []string{"postgres://u:p@ss@db/x", "postgres://u:p%40ss@one,two/x", "postgresql:///x?host=/run/postgresql", "postgres://u:p@h:5432,i:5433/x?sslmode=disable", "x.db"} {
		require.NoError(t, checkDatabase(address), address)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	_, err := program(t, "-data", dir, "-check")
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Dir(dir), "a check makes nothing")
}

func TestTheUsualAddressIsThisComputers(t *testing.T) {
	require.Equal(t, "127.0.0.1:8080", defaults().Listen)
	t.Setenv("POSTERN_USUAL_LISTEN", ":8080")
	require.Equal(t, ":8080", defaults().Listen, "as the container image sets it")
	s, err := load(options{Config: file(t, "listen: 127.0.0.1:1")})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:1", s.Listen, "settings win")
}

func TestATakenAddressNamesItsSetting(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dir := t.TempDir()
	_, err = program(t, "-data", dir, "-listen", ln.Addr().String(), "-mqtt-listen", "")
	require.Error(t, err)
	_, err = program(t, "-data", dir, "-listen", ln.Addr().String(), "-mqtt-listen", "127.0.0.1:0", "-admin-listen", "")
	require.ErrorContains(t, err, "end the program that has it, or set listen to another address")
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)
}
