// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atollprometheus exposes the events of Atoll's packages as metrics of Prometheus.
//
// Metrics has a method for the Observer of each package, and is a prometheus.Collector, which any registry accepts, also
// the one of controller-runtime:
//
//	metrics, err := atollprometheus.New(atollprometheus.Options{})
//	...
//	err = registry.Register(metrics) // or the Registry of controller-runtime's package metrics
//	...
//	ring, err := region.NewRing(source, region.Options{Observer: metrics.Region(nil)})
//	...
//	coordinator, err := fanout.New(ring, log, fanout.Options{Observer: metrics.Fanout(nil)})
//
// An Observer of the program's own is the argument of the method, and is called too:
//
//	log, err := wal.Open(path, wal.Options{Observer: metrics.WAL(&wal.Observer{Committed: committed})})
//
// Observers of package events take Observers of this package as their argument:
//
//	peers, err := central.NewPeers(source, ring, central.PeersOptions{Observer: recorder.Peers(plane, metrics.Central(nil))})
//
// Set Options.Directory to get the health of each peer, and the requests of router/proxy by region. It is a func, because
// the Ring needs an Observer before it exists:
//
//	var ring atomic.Pointer[region.Ring]
//	metrics, err := atollprometheus.New(atollprometheus.Options{Directory: func() region.Directory {
//		if r := ring.Load(); r != nil {
//			return r
//		}
//		return nil // not the nil *region.Ring, which is not a nil Directory
//	}})
//
// With package syncer/targets, call Syncer in Options.Configure. Give it a ctx for each target, and end this ctx at the next
// call for the same target:
//
//	Configure: func(target *v1alpha1.SyncTarget, opts *syncer.Options) {
//		mu.Lock()
//		defer mu.Unlock()
//		if end := ends[target.Name]; end != nil {
//			end()
//		}
//		var ctx context.Context
//		ctx, ends[target.Name] = context.WithCancel(context.Background())
//		opts.Observer = metrics.Syncer(ctx, opts.Observer)
//	}
//
// # Guaranteed
//
//   - Names, labels and help of metrics that cmd/atoll-manager exposes are the same here.
//   - No metric has names of objects, namespaces, operations, or texts of errors as label values. A client of a gateway
//     cannot add series by its choice of methods, verbs, paths or regions.
//   - Metrics of a package are collected only once the method for its Observer was called.
//   - A chained Observer gets every event, and fields that this package does not use are passed on.
//   - An Observer does no I/O, starts no goroutine and waits only for short locks.
//
// # Not guaranteed
//
//   - That series end. The counters of a peer that has left stay until the program ends, as do series of a region that
//     is no longer served. Only atoll_peer_healthy has the present peers alone.
//   - Gauges of several groups of replicas (Shard), several masters (Central), several files of logs (WAL), several
//     Routers with a Cache or several Renewers (Join) in one process: the last event counts.
//   - Exact gauges of operations: an operation counts from its first command. One that is replaced by an operation of
//     the same idempotency key counts for ten minutes more.
//   - That all metrics of the program cmd/atoll-gateway are among these: it counts the requests of its server itself.
package atollprometheus
