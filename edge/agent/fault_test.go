package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Rows of device-link 9 that the agent itself answers: a message that cannot be
// trusted does nothing, is counted, and is recorded once an hour; the genuine one
// after it works.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	beep := wire.Command{CommandID: "c-1", DeviceCode: "CAB-1", Kind: wire.CmdBeep}
	elsewhere := beep
	elsewhere.DeviceCode = "CAB-2"
	for name, send := range map[string]func(b *bench, by *signed.Signer){
		"forged command": func(b *bench, by *signed.Signer) { (*handler)(b.agent).Command(b.seal(by, signed.ForCommand, beep)) },
		"command of another device": func(b *bench, by *signed.Signer) {
			if by != b.old {
				(*handler)(b.agent).Command(b.seal(b.old, signed.ForCommand, elsewhere))
				return
			}
			(*handler)(b.agent).Command(b.seal(by, signed.ForCommand, beep))
		},
		"command signed for another purpose": func(b *bench, by *signed.Signer) {
			purpose := signed.ForCommand
			if by != b.old {
				purpose = signed.ForCodes
			}
			(*handler)(b.agent).Command(b.seal(b.old, purpose, beep))
		},
		"unsigned command": func(b *bench, by *signed.Signer) {
			if by != b.old {
				(*handler)(b.agent).Command(wire.MustEncode(beep))
				return
			}
			(*handler)(b.agent).Command(b.seal(by, signed.ForCommand, beep))
		},
		"code list of another device": func(b *bench, by *signed.Signer) {
			code := "CAB-1"
			if by != b.old {
				code = "CAB-2"
			}
			(*handler)(b.agent).Codes(uplink.CodesAnswer{Nonce: []byte("n"), Envelope: b.seal(b.old, signed.ForCodes, wire.Codes{DeviceCode: code, To: 1, Generation: 1, Nonce: []byte("n"), Entries: staffCode(1)})})
		},
		"time for another device": func(b *bench, by *signed.Signer) {
			code := "CAB-1"
			if by != b.old {
				code = "CAB-2"
			}
			(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: b.seal(b.old, signed.ForTime, wire.Time{DeviceCode: code, Nonce: []byte("n"), ServerTime: time.Now().UnixNano()}),
				Nonce: []byte("n"), SentAt: time.Now(), ReceivedAt: time.Now()})
		},
		"configuration of another device": func(b *bench, by *signed.Signer) {
			if by == b.old {
				b.config(by, 1, nil)
				return
			}
			(*handler)(b.agent).Config(b.seal(b.old, signed.ForConfig, wire.Config{DeviceCode: "CAB-2", Version: 1, Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}))
		},
		"forged code list": func(b *bench, by *signed.Signer) {
			(*handler)(b.agent).Codes(uplink.CodesAnswer{Nonce: []byte("n"), Envelope: b.seal(by, signed.ForCodes, wire.Codes{DeviceCode: "CAB-1", To: 1, Generation: 1, Nonce: []byte("n"), Entries: staffCode(1)})})
		},
		"forged configuration": func(b *bench, by *signed.Signer) { b.config(by, 1, nil) },
		"forged time": func(b *bench, by *signed.Signer) {
			(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: b.seal(by, signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte("n"), ServerTime: time.Now().UnixNano()}),
				Nonce: []byte("n"), SentAt: time.Now(), ReceivedAt: time.Now()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer func() { b.halt() }()
				stranger := signer(t, 77)
				was := b.effects()
				for range 5 {
					send(b, stranger)
					synctest.Wait()
					time.Sleep(time.Minute)
				}
				require.Equal(t, was, b.effects(), "nothing is done")
				require.EqualValues(t, 5, b.agent.Health().Uplink["forged"])
				require.Equal(t, []string{wire.TamperBadSignature}, b.tampers(), "recorded once an hour")
				time.Sleep(time.Hour)
				send(b, stranger)
				synctest.Wait()
				require.Len(t, b.tampers(), 2)
				send(b, b.old)
				synctest.Wait()
				require.NotEqual(t, was, b.effects(), "the genuine one works")
			})
		})
	}
}

func (b *bench) seal(by *signed.Signer, p signed.Purpose, payload any) []byte {
	b.t.Helper()
	env, err := by.Sign(p, payload)
	require.NoError(b.t, err)
	return env
}

// effects are what messages from the cloud have changed.
func (b *bench) effects() [4]int {
	s := b.agent.loop.State()
	return [4]int{len(s.Commands), len(s.Codes), int(s.Config.Version), int(b.agent.Now().Clock)}
}
