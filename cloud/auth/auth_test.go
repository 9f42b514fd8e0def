package auth

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	h := HashPassword("correct horse")
	require.True(t, CheckPassword(h, "correct horse"))
	require.False(t, CheckPassword(h, "correct horsf"))
	require.NotEqual(t, h, HashPassword("correct horse"), "salted")
	for _, bad := range []string{"", "x", "$argon2id$v=19$m=8,t=0,p=1$AAAA$AAAA", "$argon2id$v=19$m=0,t=0,p=0$$", "$argon2id$v=19$m=19456,t=2,p=1$!!$!!", "$argon2id$v=19$m=99999999,t=2,p=1$AAAA$AAAA"} {
		require.False(t, CheckPassword(bad, "correct horse"), bad)
	}
	require.Len(t, NewToken(), 64)
}

func FuzzCheckPassword(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$AAAA$AAAA")
	f.Fuzz(func(t *testing.T, hash string) {
		if len(hash) < 200 {
			_ = CheckPassword(hash, "x") // must not panic
		}
	})
}
