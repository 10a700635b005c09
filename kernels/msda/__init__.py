"""msda: multi-scale deformable attention, forward and backward (Deformable DETR's sampling operator).

For each query and head it gathers ``levels * points`` bilinear samples of a feature pyramid and sums them with
attention weights. The forward is a gather, the backward a scatter with atomic adds, which is why the two behave
so differently on a GPU. Shapes: B batch, Q queries, N heads, D channels of a head, L levels, P points,
S pixels of all levels together.

* ``value`` ``[B, S, N, D]``; levels one after the other, rows of pixels within each
* ``sampling_locations`` ``[B, Q, N, L, P, 2]``, (x, y) from 0 to 1 over the level
* ``attention_weights`` ``[B, Q, N, L, P]``
* result ``[B, Q, N * D]``

A location is the pixel coordinate ``location * size - 0.5``, so pixel i has its centre at ``(i + 0.5) / size``
(``align_corners=False``). Corners outside the level count as zero.
"""
