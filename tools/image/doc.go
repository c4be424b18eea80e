// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image builds the OCI image of a program of this repository, without a container engine:
//
//	go -C tools/image run . -program cmd/atoll-gateway -out /tmp/atoll-gateway
//
// The image has nothing but the program, and the certificate authorities of Mozilla from golang.org/x/crypto/x509roots.
// It runs as the user 65532. The output is a folder in the layout of OCI, which "skopeo copy oci:FOLDER ..." and "crane
// push" read. The command prints the digest.
//
// Guaranteed: the same commit and the same version of Go make the same digest, on any machine.
//
// Not guaranteed: that the image can be signed or scanned by its layers: it has two.
package main
