// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package region provides the list of peers and regions, connections to the peers, and their health.
//
// A peer is one regional control plane: an API server reached by one kubeconfig. A region is a place where services run,
// named by a provider (NAME.PROVIDER, "eu-west-1.loodse") and served by exactly one peer. A [Source] provides the list of
// peers, a [Ring] keeps them connected and probes them, a [Directory] gives other packages access to them, and a [Conn] is
// the lasting connection to one peer.
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
//   - Clients outlive credentials. Clients made from a Conn stay valid while token, certificate, CA and address change.
//     New requests use the new credentials at once. If a request was rejected (401) because the credentials changed,
//     the Conn sends it again; the Conn repeats no other request.
//   - Credentials are never rotated to another cluster: the UID of the kube-system namespace identifies the cluster. Each
//     peer must grant the right to read it.
//   - A kubeconfig is checked before any of it is used. It cannot make this program read a file, and can make this
//     program run only the programs that [Trust] names.
//   - Absence is not deletion. A source that cannot be read, a file that cannot be parsed and an unreachable peer change
//     nothing in the Snapshot.
//   - A program that starts while its source cannot be read has the last known peers and credentials, if [Keep] kept them.
//   - A failing peer does not affect the others. Each has its own goroutine, timeouts and backoff.
//   - A failure of many peers is one [PartialError], which is never mistaken for the NotFound of one of them.
//   - An error of a request has a cause: [CauseOf] returns its class, [Diagnose] adds what to do about it.
//   - Secrets are not shown: not by String, not in JSON, not in logs, not in errors.
//   - A peer's redirect is not followed, and a caller's token is never sent with the library's client certificate.
//
// Not guaranteed:
//   - That a healthy peer responds to the next request. Health is the result of the last probes, with hysteresis.
//   - That a write that ended with [ErrUnavailable] had no effect. [Attempt] reports whether it was sent.
//   - That two sources, or two processes, see the same peers at the same time. Generations count within one process.
package region
