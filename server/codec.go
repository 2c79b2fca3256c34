package server

import (
	"encoding/binary"
	"fmt"
	"iter"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// frame is a message that is encoded already. It may be shared: nobody writes
// to it.
type frame []byte

// codec is the one of grpc, except that frames are sent as they are.
type codec struct{}

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(f)}, nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// Name implements encoding.CodecV2.
func (codec) Name() string { return proto.Name }

// appendFrame puts a frame at the end of a block of frames.
func appendFrame(block []byte, f []byte) []byte {
	block = binary.AppendUvarint(block, uint64(len(f)))
	return append(block, f...)
}

// frames are the frames of a block, without copying them.
func frames(block []byte) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		for len(block) > 0 {
			n, k := binary.Uvarint(block)
			if k <= 0 || uint64(len(block)-k) < n {
				yield(nil, fmt.Errorf("block of frames is cut: %d bytes are left", len(block)))
				return
			}
			end := k + int(n)
			if !yield(frame(block[k:end:end]), nil) {
				return
			}
			block = block[end:]
		}
	}
}
