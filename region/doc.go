// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package region knows who the peers and regions are, how to reach them, and whether they are well.
//
// A peer is one regional control plane: an API server reached by one kubeconfig. A region is a place where services run,
// named by a provider (NAME.PROVIDER, "eu-west-1.loodse") and served by exactly one peer. A [Source] says which peers
// there are, a [Ring] keeps them connected and probes them, a [Directory] is how everything else sees them, and a [Conn]
// is the lasting connection to one.
//
//	source, err := region.FromFile("/etc/atoll/peers.yaml", region.Trust{})
//	ring, err := region.NewRing(source, region.Options{})
//	ended := make(chan error, 1)
//	go func() { ended <- ring.Start(ctx) }()
//	select {
//	case <-ring.Synced():
//	case err = <-ended: // the source cannot be read
//	case <-time.After(10 * time.Second): // it has not published yet
//	}
//	versions, err := region.Each(ctx, ring, "read version", region.BestEffort(), readVersion)
//
// Guaranteed:
//   - Clients outlive credentials. Those made from a Conn stay valid while token, certificate, CA and address change. New
//     requests use the new credentials at once; a request that was refused (401) because they changed is sent again.
//     Nothing else is ever sent twice.
//   - Credentials are never rotated to another cluster: the UID of the kube-system namespace decides. Reading it is a
//     right that each peer must grant.
//   - A kubeconfig is checked before any of it is acted on. It reads no file and runs no program that [Trust] does not
//     name.
//   - Absence is not deletion. A source that cannot be read, a file that cannot be parsed and a peer that does not answer
//     change nothing in the Snapshot.
//   - One peer's trouble stays its own. Each has its own goroutine, time limits and back-off.
//   - A failure of many peers is one [PartialError], which is never mistaken for the NotFound of one of them.
//   - An error of a request tells its cause: [CauseOf] has the classes, [Diagnose] says what to do about each.
//   - Secrets are not shown: not by String, not in JSON, not in logs, not in errors.
//   - A peer's redirect is not followed, and a caller's token never meets the library's client certificate.
//
// Not guaranteed:
//   - That a healthy peer answers the next request. Health is what the last probes found, with hysteresis.
//   - That a write that ended with [ErrUnavailable] had no effect. [Attempt] says whether it was sent.
//   - That two sources, or two processes, see the same peers at the same time. Generations count within one process.
package region
