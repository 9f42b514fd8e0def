package uplink

import (
	"bytes"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"
)

func publishBytes(size int) []byte {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = "t", make([]byte, size)
	var b bytes.Buffer
	_ = p.Write(&b)
	return b.Bytes()
}

func TestFramesRefuseAPacketThatIsTooLarge(t *testing.T) {
	t.Parallel()
	var f frames
	for _, size := range []int{0, 1, 127, 128, 20_000, 128 << 10} {
		require.NoError(t, f.feed(publishBytes(size)))
		require.Equal(t, frames{value: f.value, shift: f.shift}, f, "ends between packets")
	}
	require.Error(t, f.feed(publishBytes(maxPacket + 1)[:5]))
	f = frames{}
	require.Error(t, f.feed([]byte{0x30, 0x80, 0x80, 0x80, 0x80, 0x01}), "a length of five bytes")
}

// However the stream is cut, the verdict is the same.
func FuzzFrames(f *testing.F) {
	f.Add(append(publishBytes(300), publishBytes(5)...), 7)
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x7f}, 1)
	f.Add([]byte{0xd0, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, parts frames
		want := whole.feed(b)
		n := 1 + int(uint(cut)%64)
		var got error
		for rest := b; len(rest) > 0 && got == nil; rest = rest[min(n, len(rest)):] {
			got = parts.feed(rest[:min(n, len(rest))])
		}
		require.Equal(t, want == nil, got == nil)
		if want == nil {
			require.Equal(t, whole, parts)
		}
	})
}
