// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import "github.com/atoll-dev/atoll/region"

// Shard selects the objects of one replica of a program. The field Shard of each options type
// documents the form of the keys.
type Shard = region.Shard
