package uplink

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func bubble(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { fn(t, newRig(t)) })
}

func TestConnectSubscribesThenStatusThenLaneZeroThenOne(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.add(wire.KindScan, "s", 1, 3, 10)
		r.add(wire.KindOpeningStarted, "o", 1, 2, 10)
		r.run()
		r.until(time.Second, func() bool { return len(r.c.bodies(1)) == 3 })
		require.Equal(t, []string{"connect", "subscribe", "online with nonce", "lane 0 1-3", "lane 1 1-3"},
			texts(r.c.seen("connect", "subscribe", "status", "batch")))
		st := r.c.seen("status")[0].status
		require.Equal(t, [2]wire.LaneEnd(st.Ends), r.s.Ends())
		require.Equal(t, []uint64{3, 3}, st.Backlog)
		require.Equal(t, r.s.Epoch(), st.Epoch)
		require.Equal(t, []string{"o1", "o2"}, r.c.bodies(0))
		r.until(time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		c := r.c.newest().will
		require.Equal(t, "dev-CAB-1", c.ClientIdentifier)
		require.Equal(t, "CAB-1", c.Username)
		require.Equal(t, "secret", string(c.Password))
		require.True(t, c.CleanSession && c.WillFlag && c.WillRetain && c.WillQos == 1)
		require.Equal(t, uint16(30), c.Keepalive)
		will, err := wire.DecodeStatus(c.WillMessage)
		require.NoError(t, err)
		require.Equal(t, wire.Offline, will.State)
		require.Equal(t, []byte("i"), will.Instance)
	})
}

func TestSilentCloudIsGivenTwoSecondsAndLaneOneNoCredit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.onAck = func(wire.Status) bool { return false }
		r.c.answer = func(*wire.Batch, *wire.Ack) bool { return false }
		r.add(wire.KindScan, "s", 1, 3, 10)
		r.run()
		r.until(5*time.Second, func() bool { return len(r.c.seen("batch")) > 0 })
		b := r.c.seen("batch")[0]
		require.Equal(t, "lane 0 1-1", b.String())
		require.Equal(t, 2*time.Second, (b.at - r.c.seen("status")[0].at).Round(50*time.Millisecond))
		time.Sleep(7 * time.Second)
		require.Len(t, r.c.seen("batch"), 1, "no credit before the first acknowledgement")
		time.Sleep(5 * time.Second)
		require.Contains(t, texts(r.c.seen("batch")), "lane 1 1-1", "after 10 s one record asks for it")
	})
}

func TestWindowAndStartingAgainAfterTenSecondsWithoutProgress(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.add(wire.KindOpeningStarted, "o", 1, 300, 4000)
		r.c.answer = func(*wire.Batch, *wire.Ack) bool { return false }
		r.run()
		time.Sleep(5 * time.Second)
		total := 0
		sent := r.c.seen("batch")
		for _, e := range sent {
			total += e.bytes
		}
		require.LessOrEqual(t, len(sent), 8)
		require.LessOrEqual(t, total, 256<<10)
		require.Greater(t, total, 200<<10)
		first := sent[0].at
		r.c.forget()
		time.Sleep(4 * time.Second)
		require.Empty(t, r.c.seen("batch"))
		r.until(2*time.Second, func() bool { return len(r.c.seen("batch")) > 0 })
		again := r.c.seen("batch")[0]
		require.Equal(t, uint64(1), again.batch.First)
		require.Equal(t, 10*time.Second, (again.at - first).Round(50*time.Millisecond))
		r.c.mu.Lock()
		r.c.answer = nil
		r.c.mu.Unlock()
		r.until(30*time.Second, func() bool { return len(r.c.bodies(0)) == 300 })
		require.Equal(t, names("o", 1, 300), r.c.bodies(0))
	})
}

func TestManySmallBatchesKeepTheWindowOfEight(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.answer = func(*wire.Batch, *wire.Ack) bool { return false }
		r.run()
		for i := range 20 { // live records, each its own batch
			r.add(wire.KindOpeningStarted, "o", i+1, i+1, 10)
			time.Sleep(20 * time.Millisecond)
		}
		require.Len(t, r.c.seen("batch"), 8)
	})
}

func TestHoleIsRepeatedOnceFromTheLastAcknowledgement(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		time.Sleep(time.Second)
		lost := 0
		r.c.mu.Lock()
		r.c.lose = func(p *packets.PublishPacket) bool { lost++; return lost == 1 }
		r.c.mu.Unlock()
		r.add(wire.KindOpeningStarted, "o", 1, 200, 4000)
		r.until(3*time.Second, func() bool { return len(r.c.bodies(0)) == 200 })
		require.Equal(t, names("o", 1, 200), r.c.bodies(0))
		require.Equal(t, uint64(1), r.u.Counters().Resends)
	})
}

func TestLostAcknowledgementsAreMadeUpForByTheNextOne(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		n := 0
		r.c.answer = func(*wire.Batch, *wire.Ack) bool { n++; return n%3 == 0 }
		r.add(wire.KindOpeningStarted, "o", 1, 100, 8000)
		r.run()
		r.until(60*time.Second, func() bool { return r.s.Backlog()[0] == 0 })
		require.Equal(t, names("o", 1, 100), r.c.bodies(0))
	})
}

func TestRefusedBatchIsHalvedAndTheRecordSetAside(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.add(wire.KindScan, "s", 1, 100, 10)
		old := r.s.Epoch()
		bad := func(b *wire.Batch) bool {
			for _, raw := range b.Records {
				rec, _ := wire.DecodeRecord(raw)
				var m map[uint]string
				if wire.Decode(rec.Body, &m) == nil && m[1] == "s37" {
					return true
				}
			}
			return false
		}
		var singles int
		r.c.answer = func(b *wire.Batch, a *wire.Ack) bool {
			if !bad(b) {
				return true
			}
			if len(b.Records) == 1 {
				singles++
			}
			ln := r.c.lane(b.Epoch, b.Lane) // nothing of it was stored
			ln.next, ln.records = b.First, ln.records[:len(ln.records)-len(b.Records)]
			ln.head = wire.FirstHead(b.Epoch, b.Lane)
			for _, raw := range ln.records {
				ln.head = ln.head.Next(raw)
			}
			a.Next, a.Head, a.Refused, a.RefusedFirst = ln.next, ln.head, wire.RefusedBadBatch, b.First
			return true
		}
		r.run()
		r.until(2*time.Minute, func() bool { return r.s.Backlog() == [2]uint64{} && r.s.Epoch() != old })
		require.Equal(t, 3, singles)
		want := append(names("s", 1, 36), names("s", 38, 100)...)
		require.Equal(t, want, r.c.bodies(1))
		run, err := r.s.Read(0, 1, 1, 1<<20)
		require.NoError(t, err)
		rec, err := wire.DecodeRecord(run.Records[0])
		require.NoError(t, err)
		var g wire.Gap
		require.NoError(t, wire.Decode(rec.Body, &g))
		require.Equal(t, wire.GapRefused, g.Reason)
		require.Equal(t, old, g.Epoch)
		require.Equal(t, [2]uint64{37, 37}, [2]uint64{g.First, g.Last})
	})
}

func TestForkRefusalBeginsANewEpochThatGoesOn(t *testing.T) {
	for _, why := range []string{wire.RefusedFork, wire.RefusedEpochConflict} {
		t.Run(why, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.add(wire.KindOpeningStarted, "o", 1, 5, 10)
				old := r.s.Epoch()
				r.c.answer = func(b *wire.Batch, a *wire.Ack) bool {
					if b.Epoch == old {
						*a = wire.Ack{Epoch: old, Next: 1, Head: wire.FirstHead(old, 0), Refused: why, RefusedFirst: b.First}
						r.c.epochs[old][0].records = nil // kept aside
					}
					return true
				}
				r.run()
				r.until(5*time.Second, func() bool { return r.s.Epoch() != old && r.s.Backlog() == [2]uint64{} })
				require.Equal(t, names("o", 1, 5), r.c.bodies(0))
				var prev []*wire.Epoch
				for _, e := range r.c.seen("batch") {
					prev = append(prev, e.batch.PrevEpoch)
				}
				require.Equal(t, &old, prev[len(prev)-1])
				all := texts(r.c.seen("status", "batch"))
				require.Equal(t, "online with nonce", all[len(all)-2], "a status comes before the new epoch's records")
				require.Equal(t, uint64(1), r.u.Counters().Epochs)
			})
		})
	}
}

func TestCloudThatAlwaysSaysForkDoesNotWearOutTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.answer = func(b *wire.Batch, a *wire.Ack) bool { a.Refused = wire.RefusedFork; return true }
		r.run()
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, r.u.Counters().Epochs, uint64(11))
		require.GreaterOrEqual(t, r.u.Counters().Epochs, uint64(5))
	})
}

func TestRolledBackStoreBeginsANewEpoch(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.add(wire.KindOpeningStarted, "o", 1, 2, 10)
		require.NoError(t, r.s.Close())
		copied, err := os.ReadFile(r.cfg.Path)
		require.NoError(t, err)
		r.open()
		r.u.cfg.Store = r.s
		r.add(wire.KindOpeningStarted, "o", 3, 6, 10)
		r.run()
		r.until(5*time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		r.end()
		old := r.s.Epoch()
		require.NoError(t, r.s.Close())
		require.NoError(t, os.WriteFile(r.cfg.Path, copied, 0o600))
		r.open()
		r.add(wire.KindOpeningStarted, "x", 1, 2, 10)
		var reasons []string
		u, err := New(Config{DeviceCode: "CAB-1", Brokers: []string{"tcp://127.0.0.1:1883"}, Dial: r.c.dial, Store: r.s,
			Status: r.status, Sample: r.sample, Handler: r, Forked: func(why string) { reasons = append(reasons, why) }})
		require.NoError(t, err)
		r.u = u
		r.run()
		r.until(5*time.Second, func() bool { return r.s.Epoch() != old && r.s.Backlog() == [2]uint64{} })
		require.Equal(t, []string{wire.GapStoreRolledBack}, reasons)
		got := r.c.bodies(0)
		require.Equal(t, append(names("o", 1, 6), "x1", "x2"), got, "nothing twice")
	})
}

func TestCreditPacesLaneOneOnly(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		rate := uint64(50)
		r.c.credit = &rate
		r.add(wire.KindScan, "s", 1, 1000, 10)
		r.add(wire.KindOpeningStarted, "o", 1, 1000, 10)
		r.run()
		time.Sleep(10 * time.Second)
		require.Len(t, r.c.bodies(0), 1000)
		n := len(r.c.bodies(1))
		require.InDelta(t, 500, n, 60)
		r.c.mu.Lock()
		r.c.credit = nil
		r.c.mu.Unlock()
		r.until(time.Second, func() bool { return len(r.c.bodies(1)) == 1000 })
		require.Equal(t, names("s", 1, 1000), r.c.bodies(1))
	})
}

func TestZeroCreditIsAskedAboutEveryMinute(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		none := uint64(0)
		r.c.credit = &none
		r.add(wire.KindScan, "s", 1, 100, 10)
		r.run()
		time.Sleep(210 * time.Second)
		require.Len(t, r.c.bodies(1), 3)
	})
}

func TestLaneOneBehindAGapWaitsForTheGap(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.cfg.MaxBytes, r.cfg.SegmentRecords, r.cfg.Path = 1<<20, 20, r.cfg.Path+"2"
		r.open()
		r.u.cfg.Store = r.s
		for i := 0; r.s.Oldest()[1] == 1; i += 10 {
			r.add(wire.KindScan, "s", i+1, i+10, 3000)
		}
		held := true
		r.c.answer = func(b *wire.Batch, a *wire.Ack) bool { return b.Lane != 0 || !held }
		r.run()
		time.Sleep(5 * time.Second)
		for _, e := range r.c.seen("batch") {
			require.Equal(t, wire.Settlement, e.batch.Lane)
		}
		r.c.mu.Lock()
		held = false
		r.c.mu.Unlock()
		r.until(30*time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		for _, e := range r.c.seen("batch") {
			if e.batch.Lane == wire.Telemetry {
				require.Greater(t, e.batch.First, uint64(1), "goes on at the oldest")
				break
			}
		}
		got := r.c.bodies(1)
		require.NotEmpty(t, got)
		require.Equal(t, uint64(0), r.u.Counters().Epochs)
		r.c.mu.Lock()
		ln := r.c.epochs[r.s.Epoch()][1]
		r.c.mu.Unlock()
		require.Equal(t, r.s.Ends()[1].Head, ln.head, "the chain goes on from the gap's head")
	})
}

func TestLiveSettlementWaitsForAtMostOneTelemetryBatchAndAStatusForNone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.add(wire.KindScan, "s", 1, 4000, 400)
		r.c.delay = func(topic string) time.Duration { return time.Second } // a slow line
		r.run()
		r.until(20*time.Second, func() bool { return len(r.c.seen("batch")) >= 3 })
		r.c.forget()
		r.u.StatusChanged()
		time.Sleep(statusGap) // by then it is due; before that it waits for others of its kind
		r.add(wire.KindOpeningSettled, "live", 1, 1, 10)
		r.until(20*time.Second, func() bool { return len(r.c.bodies(0)) == 1 })
		all := texts(r.c.seen("batch", "status"))
		at, status := slices.Index(all, "lane 0 2-2"), slices.Index(all, "online")
		// One batch the line had taken before, one was being written.
		require.LessOrEqual(t, at, 3, "%v", all)
		require.Contains(t, []int{0, 1, 2}, status, "the status waits for what is being written and no more: %v", all)
		require.Less(t, status, at, "and goes first: %v", all)
	})
}

func TestStatusAtMostFiveASecondTheNewestWins(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		time.Sleep(time.Second)
		r.c.forget()
		for i := range 200 {
			r.doors.Store(uint64(i + 1))
			r.u.StatusChanged()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		seen := r.c.seen("status")
		require.LessOrEqual(t, len(seen), 11)
		require.GreaterOrEqual(t, len(seen), 9)
		require.Equal(t, uint64(200), seen[len(seen)-1].status.CodeList)
		for i := 1; i < len(seen); i++ {
			require.GreaterOrEqual(t, seen[i].at-seen[i-1].at, 200*time.Millisecond)
		}
		require.Nil(t, seen[0].status.Nonce)
	})
}

func TestStatusWithAFreshNonceEveryTenMinutes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		time.Sleep(31 * time.Minute)
		seen := r.c.seen("status")
		require.Len(t, seen, 4)
		nonces := map[string]bool{}
		for _, e := range seen {
			require.Len(t, e.status.Nonce, 16)
			nonces[string(e.status.Nonce)] = true
		}
		require.Len(t, nonces, 4)
		require.Equal(t, 10*time.Minute, (seen[3].at - seen[2].at).Round(time.Second))
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(t, r.time, 4)
		for i, a := range r.time {
			require.Equal(t, seen[i].status.Nonce, a.Nonce)
			require.Equal(t, wire.MustEncode(a.Nonce), a.Envelope)
			require.False(t, a.ReceivedAt.Before(a.SentAt))
		}
	})
}

// A time answer that was lost left a cabinet without the time, and every command
// refused, for ten minutes.
func TestAnAnswerOfTheTimeThatWasLostIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		answered := 0
		r.c.onAck = func(wire.Status) bool { answered++; return answered > 3 }
		r.run()
		time.Sleep(4 * time.Minute)
		require.Len(t, r.c.seen("status"), 4)
		r.mu.Lock()
		require.Len(t, r.time, 1)
		r.mu.Unlock()
		time.Sleep(8 * time.Minute)
		require.Len(t, r.c.seen("status"), 4, "once answered, every ten minutes")
	})
}

func TestDownMessagesReachTheHandlerAndGarbageIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		l := r.c.newest()
		l.down(wire.DownCommand, wire.MustEncode("one"))
		l.down(wire.DownCodes, wire.MustEncode("two"))
		l.publishDown("config", []byte("three"))
		l.publishDown("down", []byte{0xff, 0x00})
		l.down(wire.DownAck, wire.MustEncode(wire.Ack{Lane: 7}))
		l.down(wire.DownType(99), wire.MustEncode("later agents know"))
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Equal(t, []string{"command " + string(wire.MustEncode("one")), "codes " + string(wire.MustEncode("two")), "config three"}, r.got)
		require.Equal(t, uint64(2), r.u.Counters().BadDown)
		require.True(t, r.u.Connected())
	})
}

func TestPacketBeyondTheLimitEndsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.c.newest().publishDown("config", make([]byte, maxPacket+1))
		r.until(time.Minute, func() bool { return r.u.Counters().Kicks == 1 })
		require.Empty(t, r.got)
	})
}

// A connection over which nothing is acknowledged any more is given up for another; one
// over which nothing waits for that, or little is allowed to go, stands.
func TestADeafConnectionIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		deaf := false
		r.c.answer = func(*wire.Batch, *wire.Ack) bool { return !deaf }
		r.c.onAck = func(wire.Status) bool { return !deaf }
		r.run()
		r.until(5*time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		r.c.mu.Lock()
		deaf = true
		r.c.mu.Unlock()
		time.Sleep(9 * time.Minute)
		require.Len(t, r.c.seen("connect"), 1, "nothing was sent")
		r.add(wire.KindOpeningSettled, "o", 1, 3, 10)
		time.Sleep(deafAfter)
		require.Len(t, r.c.seen("connect"), 1)
		r.until(deafAfter/3+30*time.Second, func() bool { return len(r.c.seen("connect")) == 2 })
		r.c.mu.Lock()
		deaf = false
		r.c.mu.Unlock()
		r.until(30*time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		require.Equal(t, names("o", 1, 3), r.c.bodies(0))
		time.Sleep(time.Hour)
		require.Len(t, r.c.seen("connect"), 2)
	})
}

func TestCleanStopSaysOfflineAndDisconnects(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		time.Sleep(time.Second)
		r.c.forget()
		r.end()
		require.Equal(t, []string{"offline", "disconnect"}, texts(r.c.seen("status", "disconnect", "batch")))
		require.False(t, r.u.Connected())
	})
}

func TestReconnectRepeatsOnlyWhatIsNotAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		r.add(wire.KindOpeningStarted, "o", 1, 10, 10)
		r.until(time.Second, func() bool { return r.s.Backlog()[0] == 0 })
		time.Sleep(2 * time.Minute)
		r.c.cut()
		r.add(wire.KindOpeningStarted, "o", 11, 12, 10)
		r.c.forget()
		r.until(2*time.Second, func() bool { return r.s.Backlog()[0] == 0 })
		require.Equal(t, []string{"connect", "subscribe", "online with nonce", "lane 0 12-13"},
			texts(r.c.seen("connect", "subscribe", "status", "batch")))
	})
}

func TestBackoffFigures(t *testing.T) {
	t.Parallel()
	ceilings := func(o outcome, n int) (max []time.Duration) {
		for range n {
			max = append(max, 0)
		}
		for seed := range uint64(400) {
			b := backoff{rnd: rand.New(rand.NewPCG(seed, 9))}
			for i := range n {
				max[i] = maxDuration(max[i], b.after(o))
			}
		}
		return max
	}
	check := func(o outcome, want ...time.Duration) {
		for i, got := range ceilings(o, len(want)) {
			require.LessOrEqual(t, got, want[i], "try %d", i)
			require.Greater(t, got, want[i]*9/10, "try %d: jitter is full", i)
		}
	}
	s := time.Second
	check(outcome{}, s, 2*s, 4*s, 8*s, 16*s, 30*s, 30*s, 30*s)
	check(outcome{refused: true}, s, 2*s, 4*s, 8*s, 16*s, 32*s, 64*s, 128*s, 256*s, 300*s, 300*s)
	check(outcome{up: 59 * s}, s, 2*s, 4*s, 8*s, 16*s, 32*s, 64*s, 128*s, 256*s, 300*s)
	check(outcome{up: 60 * s}, s, s, s)
}

// A network that was away for long comes back, and the first connection breaks soon: what was not
// reached before does not keep the cabinet away for minutes. A cloud that goes on refusing does.
func TestAConnectionThatBreaksAfterALongOutageIsTriedAgainWithinHalfAMinute(t *testing.T) {
	t.Parallel()
	longest := make([]time.Duration, 9)
	for seed := range uint64(400) {
		b := backoff{rnd: rand.New(rand.NewPCG(seed, 9))}
		for range 40 {
			b.after(outcome{})
		}
		for i := range longest {
			longest[i] = max(longest[i], b.after(outcome{up: 5 * time.Second}))
		}
		require.LessOrEqual(t, b.after(outcome{}), maxUnreachable)
	}
	s := time.Second
	for i, want := range []time.Duration{30 * s, 30 * s, 30 * s, 30 * s, 30 * s, 32 * s, 64 * s, 128 * s, 256 * s} {
		require.LessOrEqual(t, longest[i], want, "loss %d", i)
		require.Greater(t, longest[i], want*9/10, "loss %d", i)
	}
}

func maxDuration(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}

func TestUnreachableRefusedAndKickedBackOffDifferently(t *testing.T) {
	hour := func(t *testing.T, set func(c *cloud)) (attempts int) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			set(r.c)
			r.run()
			time.Sleep(time.Hour)
			attempts = len(r.c.seen("dial"))
		})
		return attempts
	}
	t.Parallel()
	unreachable := hour(t, func(c *cloud) { c.dialErr = func() error { return errNoNetwork } })
	require.InDelta(t, 3600/15, unreachable, 60)
	refused := hour(t, func(c *cloud) { c.refuse = func() byte { return packets.ErrRefusedBadUsernameOrPassword } })
	require.InDelta(t, 3600/150+9, refused, 15)
	kicked := hour(t, func(c *cloud) {
		c.onAck = func(wire.Status) bool { go c.cut(); return true } // soon after a successful connect
	})
	require.InDelta(t, 3600/150+9, kicked, 15)
}

// An address that fails is followed by the next one. One at which a session stood for long
// is tried again first.
func TestTheNextAddressIsTriedAfterAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var dialled []string
		down := true // the first address
		r.u.cfg.Dial = func(ctx context.Context, at *url.URL) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dialled = append(dialled, at.Host)
			if at.Host == "one:1883" && down {
				return nil, errNoNetwork
			}
			return r.c.dial(ctx, at)
		}
		r.u.SetBrokers([]string{"ssl://one:1883", "ssl://two:1883"})
		r.run()
		r.until(time.Minute, r.u.Connected)
		time.Sleep(2 * steady)
		mu.Lock()
		down = false
		mu.Unlock()
		r.c.cut()
		synctest.Wait()
		r.until(time.Minute, r.u.Connected)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"one:1883", "two:1883", "two:1883"}, dialled)
	})
}

// Whatever the line does, a cloud that acknowledges cumulatively has everything
// in the end, in order and once.
func TestRandomCutsLosesAndRepeatsLoseNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				rnd := rand.New(rand.NewPCG(seed, 77)) // under the cloud's lock from here on
				faults := true
				often := func(n int) bool { return faults && rnd.IntN(n) == 0 }
				r.c.lose = func(*packets.PublishPacket) bool { return often(8) }
				r.c.answer = func(b *wire.Batch, a *wire.Ack) bool {
					if often(4) {
						return false
					}
					if often(5) { // again, later and stale
						old, l := *a, r.c.links[len(r.c.links)-1]
						time.AfterFunc(time.Duration(rnd.IntN(3000))*time.Millisecond, func() { l.ack(old) })
					}
					return true
				}
				r.c.dialErr = func() error {
					if often(3) {
						return errNoNetwork
					}
					return nil
				}
				r.run()
				o, s := 0, 0
				for range 40 {
					r.c.mu.Lock()
					n, m, wait, cut := rnd.IntN(4), rnd.IntN(60), rnd.IntN(4000), rnd.IntN(6) == 0
					r.c.mu.Unlock()
					r.add(wire.KindOpeningStarted, "o", o+1, o+n, 20)
					r.add(wire.KindScan, "s", s+1, s+m, 900)
					o, s = o+n, s+m
					if cut {
						r.c.cut()
					}
					time.Sleep(time.Duration(wait) * time.Millisecond)
				}
				r.c.mu.Lock()
				faults = false
				r.c.mu.Unlock()
				r.until(15*time.Minute, func() bool { return r.s.Backlog() == [2]uint64{} })
				require.Equal(t, names("o", 1, o), r.c.bodies(0))
				require.Equal(t, names("s", 1, s), r.c.bodies(1))
				require.Zero(t, r.u.Counters().Epochs)
			})
		})
	}
}
