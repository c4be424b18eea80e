// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import "sync"

// buffer is the buffer through which the proxy copies a body.
type buffer [64 << 10]byte

// buffers is a pool of buffers, as httputil.ReverseProxy.BufferPool requires.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*buffer); ok {
		return kept[:]
	}
	return new(buffer)[:]
}

func (b *buffers) Put(p []byte) {
	if len(p) == len(buffer{}) {
		b.pool.Put((*buffer)(p))
	}
}
