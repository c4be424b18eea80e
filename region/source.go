// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "context"

// Source provides the list of peers. Implementations: FromPeers, FromDir, FromFile.
type Source interface {
	// Run publishes a complete Snapshot as soon as it has one and again after every change. It returns nil when ctx
	// ends, or an error when it can never publish again. It is called once. publish does not block. A source that is
	// temporarily unreadable publishes nothing: absence is not deletion.
	Run(ctx context.Context, publish func(*Snapshot)) error
}

// Refresher is a Source that can read the peers again at once, after a peer rejected its credentials. Refresh does not
// block and is safe for concurrent use.
type Refresher interface {
	Refresh()
}
