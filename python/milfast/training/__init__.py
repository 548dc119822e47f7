"""Training on ragged bags: segment operations and the loop; needs torch."""
