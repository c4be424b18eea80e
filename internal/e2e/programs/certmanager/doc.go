// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certmanager pins cert-manager, which the suite applications runs on request. It is the last release whose
// controller is a package of the module: later ones keep it in a module of its own that the module proxy does not serve.
package certmanager
