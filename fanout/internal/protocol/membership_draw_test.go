// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "math/rand/v2"

// drawChanges adds changes of the membership to a random configuration.
func drawChanges(r *rand.Rand, cfg *config) {
	if cfg.peers < 3 || r.IntN(4) > 0 {
		return
	}
	cfg.ring = cfg.peers - 1
	last := peerName(cfg.peers - 1)
	cfg.changes = []ChangeOperation{change("j", Join, last)}
	if cfg.mode == Once && r.IntN(3) == 0 {
		cfg.changes = append(cfg.changes, change("l", Leave, peerName(r.IntN(cfg.peers))))
	}
	cfg.helpers = r.IntN(2)
}
