package locale_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

// A time is said as people say it, in the zone that it is in.
func TestMoment(t *testing.T) {
	zone, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	now := time.Date(2026, 11, 26, 20, 21, 30, 0, zone) // a Thursday
	for _, x := range []struct {
		at   time.Time
		want map[string]string
	}{
		{now.Add(-20 * time.Second), map[string]string{"en": "just now", "de": "gerade eben", "zh-Hans": "刚刚"}},
		{now.Add(-12*time.Minute - 59*time.Second), map[string]string{"en": "12 min ago", "fr": "il y a 12 min", "zh-Hant": "12 分鐘前", "es": "hace 12 min"}},
		{now.Add(12*time.Minute - time.Second), map[string]string{"en": "in 12 min", "de": "in 12 Min."}},
		{now.Add(-time.Hour), map[string]string{"en": "7:21 pm", "de": "19:21"}},
		{time.Date(2026, 11, 26, 8, 12, 0, 0, zone), map[string]string{"en": "8:12", "fr": "08:12"}},
		{time.Date(2026, 11, 26, 0, 5, 0, 0, zone), map[string]string{"en": "12:05 am", "de": "00:05"}},
		{time.Date(2026, 11, 25, 18, 41, 0, 0, zone), map[string]string{"en": "yesterday, 6:41 pm", "de": "gestern, 18:41", "zh-Hans": "昨天 18:41"}},
		{time.Date(2026, 11, 27, 16, 5, 0, 0, zone), map[string]string{"en": "tomorrow, 4:05 pm", "es": "mañana, 16:05"}},
		{time.Date(2026, 11, 20, 16, 5, 0, 0, zone), map[string]string{"en": "Friday, 4:05 pm", "fr": "vendredi, 16:05", "zh-Hant": "星期五 16:05"}},
		{time.Date(2026, 11, 14, 16, 5, 0, 0, zone), map[string]string{"en": "14 Nov", "de": "14. Nov.", "zh-Hans": "11月14日"}},
		{time.Date(2025, 3, 2, 16, 5, 0, 0, zone), map[string]string{"en": "2 Mar 2025", "de": "2. März 2025", "zh-Hans": "2025年3月2日", "es": "2 mar 2025"}},
	} {
		for lang, want := range x.want {
			require.Equal(t, want, locale.Moment(lang, x.at, now.UTC()), "%s %s", lang, x.at)
		}
	}
}

func TestDaysInWords(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -5*3600)
	now := time.Date(2026, 11, 27, 23, 50, 0, 0, zone) // a Friday, and Saturday already in UTC
	for day, want := range map[string]string{"2026-11-27": "today", "2026-11-26": "yesterday", "2026-11-28": "tomorrow", "2026-11-30": "Monday", "2026-11-21": "Saturday", "2026-12-04": "4 Dec", "2027-01-02": "2 Jan 2027"} {
		d, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		require.Equal(t, want, locale.Day(locale.English, d, now), day)
	}
}
