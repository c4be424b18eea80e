// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of this repository in an empty folder, from one commit:
//
//	go -C tools/release run . -version v0.4.0 -out /tmp/release
//
// The folder then has
//
//   - source: a clone with the release commit and its tags, one tag for each module. In this commit the go.mod files of the
//     nested modules require the other modules at the version and do not replace them, as "go install" demands.
//   - modules: the same modules as files, in the layout of a GOPROXY.
//   - NAME_VERSION_OS_ARCH.tar.gz (.zip for Windows): a program with the license, without cgo.
//   - NAME_VERSION_OS_ARCH.cdx.json: the modules in the program, as a CycloneDX SBOM, read from the program itself.
//   - SHA256SUMS: the checksums of the files above, for "sha256sum -c".
//
// With -modules it writes only source and modules. It changes nothing in the checkout, and publishes nothing.
//
// Guaranteed: the same commit, version and Go toolchain make the same files, on any machine. A program is the one that
// "CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' MODULE@VERSION" makes. All modules in it have the hashes in the
// program's go.sum.
//
// Not guaranteed: signatures. The tags and SHA256SUMS are there to be signed.
package main
