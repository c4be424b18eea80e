// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the program atoll-gateway, for embedding: it serves many regions at one address, by a configuration.
//
//	c, err := config.Load("/etc/atoll/gateway.yaml")
//	g, err := gateway.New(ctx, c, gateway.Options{})
//	err = g.Start(ctx)
//
// # Guaranteed
//
//   - New reads every file of the configuration. If one is wrong, nothing is started, and no address is listened at.
//   - Certificates, authorities, tokens and keys are read again when their files change. If the new content cannot be used,
//     the present one stays in use.
//   - Each request that has ended is in the log, the audit log and the metrics, also if it was refused.
//   - When ctx ends, /readyz fails at once. The gateway serves on for the drain's delay, then ends watches as an API server
//     does, and lets other requests end within the drain's timeout.
//   - With a cache directory, it starts while its source cannot be read.
//
// # Not guaranteed
//
//   - That a region answers: /readyz names the regions that do not, and does not depend on them.
//   - That exec, attach, port-forward and logs survive a drain: they are cut.
package gateway
