/* The steps of pair_terms.c for one width of numbers, `real`: OF_WIDTH names them, BITS are theirs, ABSOLUTE a function
 * of that width, and SMALLEST_NORMAL and LARGE numbers. */

/* |x - y| / (min(x, y) + 1); returns whether a number is not above -1, or a quotient not finite. */
VECTORISED static int64_t OF_WIDTH(growths)(int64_t count, const real *x, const real *y, real *growth)
{
    int64_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        real smaller = x[i] < y[i] ? x[i] : y[i];
        growth[i] = ABSOLUTE(x[i] - y[i]) / (smaller + 1);
        outside |= !((x[i] > -1) & (y[i] > -1) & (growth[i] < (real)INFINITY));
    }
    return outside;
}

/* Half of min(|x - y|, 1), and -2 |x - y|; returns whether an error is not below 1. */
VECTORISED static int64_t OF_WIDTH(half_errors)(int64_t count, const real *x, const real *y, real *half, real *tail)
{
    int64_t far = 0;
    for (int64_t i = 0; i < count; i++) {
        real error = ABSOLUTE(x[i] - y[i]);
        half[i] = (error > 1 ? 1 : error) * (real)0.5;
        tail[i] = error * -2;
        far |= !(error < 1);
    }
    return far;
}

/* 2 sinh(h) ** 2 of expm1(h). */
VECTORISED static int64_t OF_WIDTH(sines)(int64_t count, real *grown)
{
    for (int64_t i = 0; i < count; i++) {
        real sine = (grown[i] + grown[i] / (grown[i] + 1)) * (real)0.5;
        grown[i] = sine * sine * 2;
    }
    return 0;
}

/* The log-cosh of errors of 1 and more, from log1p(exp(-2 |x - y|)), in the place of that of the others. */
VECTORISED static int64_t OF_WIDTH(far_errors)(int64_t count, const real *x, const real *y, const real *tail, real *near)
{
    for (int64_t i = 0; i < count; i++) {
        real error = ABSOLUTE(x[i] - y[i]), far = tail[i] + (error - (real)0.6931471805599453);
        near[i] = error < 1 ? near[i] : far;
    }
    return 0;
}

/* Whether a number of rows is not positive, or their sums or shares may leave the range of normal numbers. */
VECTORISED static int64_t OF_WIDTH(has_odd_shares)(int64_t count, int64_t width, const real *x)
{
    real low = (real)INFINITY, high = 0;
    int64_t odd = 0;
    for (int64_t i = 0; i < count; i++) {
        odd |= !(x[i] > 0);
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return odd || high > LARGE || (double)low / ((double)high * (double)width) < 2 * SMALLEST_NORMAL;
}

/* The largest absolute number of its row for each number; NaN where the row has one, whose bits are the largest. */
INLINE void OF_WIDTH(spread_largest)(int64_t rows, int64_t width, const real *x, real *largest)
{
    for (int64_t i = 0; i < rows; i++) {
        BITS most = 0;
        real high;
        for (int64_t k = 0; k < width; k++) {
            BITS bits;
            memcpy(&bits, x + i * width + k, sizeof bits);
            bits <<= 1; /* without the sign */
            most = bits > most ? bits : most;
        }
        most >>= 1;
        memcpy(&high, &most, sizeof high);
        for (int64_t k = 0; k < width; k++)
            largest[i * width + k] = high;
    }
}

/* The products of each row of x and y with themselves and each other, x x, y y and x y, each of both scaled to a largest
 * number of 1. */
VECTORISED static int64_t OF_WIDTH(scaled_products)(int64_t rows, int64_t width, const real *x, const real *y,
                                                    real *restrict products)
{
    int64_t count = rows * width;
    real *xx = products, *yy = xx + count, *xy = yy + count;
    OF_WIDTH(spread_largest)(rows, width, x, xx);
    OF_WIDTH(spread_largest)(rows, width, y, yy);
    for (int64_t i = 0; i < count; i++) {
        real a = x[i] / xx[i], b = y[i] / yy[i];
        xx[i] = a * a;
        yy[i] = b * b;
        xy[i] = a * b;
    }
    return 0;
}

/* The cosine of each row from the roots of the sums of the first two products, and the sum of the third. */
VECTORISED static int64_t OF_WIDTH(cosines)(int64_t rows, const real *sums, real *values)
{
    for (int64_t i = 0; i < rows; i++) {
        real value = sums[2 * rows + i] / (sums[i] * sums[rows + i]);
        value = value < -1 ? -1 : value;
        values[i] = value > 1 ? 1 : value;
    }
    return 0;
}

/* x and y behind each other; returns whether has_odd_shares of one of them. */
VECTORISED static int64_t OF_WIDTH(copied_shares)(int64_t count, int64_t width, const real *x, const real *y, real *both)
{
    memcpy(both, x, sizeof *x * (size_t)count);
    memcpy(both + count, y, sizeof *y * (size_t)count);
    return OF_WIDTH(has_odd_shares)(count, width, x) || OF_WIDTH(has_odd_shares)(count, width, y);
}

/* The shares of numbers in the sums of their rows, in their place. */
INLINE void OF_WIDTH(divide_rows)(int64_t rows, int64_t width, const real *sums, real *x)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k++)
            x[i * width + k] /= sums[i];
}

/* From what copied_shares gives: the shares of both in its place, and those of x over those of y. */
VECTORISED static int64_t OF_WIDTH(share_ratios)(int64_t rows, int64_t width, const real *sums, real *both, real *ratios)
{
    int64_t count = rows * width;
    OF_WIDTH(divide_rows)(2 * rows, width, sums, both);
    for (int64_t i = 0; i < count; i++)
        ratios[i] = both[i] / both[count + i];
    return 0;
}

/* From what copied_shares gives: the shares, and their differences over their sums, of x and of y; returns whether one of
 * them is not above -0.5. */
VECTORISED static int64_t OF_WIDTH(share_differences)(int64_t rows, int64_t width, const real *sums, real *both,
                                                      real *differences)
{
    int64_t count = rows * width, far = 0;
    OF_WIDTH(divide_rows)(2 * rows, width, sums, both);
    for (int64_t i = 0; i < count; i++) {
        real x = both[i], y = both[count + i], difference = (x - y) / (x + y);
        differences[i] = difference;
        differences[count + i] = -difference;
        far |= !(ABSOLUTE(difference) < (real)0.5);
    }
    return far;
}

/* Twice the shares over their sums, of x and of y. */
VECTORISED static int64_t OF_WIDTH(doubled_shares)(int64_t count, const real *both, real *doubled)
{
    for (int64_t i = 0; i < count; i++) {
        real x = both[i], y = both[count + i], total = x + y, a = 2 * x / total, b = 2 * y / total;
        doubled[i] = a < SMALLEST_NORMAL ? SMALLEST_NORMAL : a;
        doubled[count + i] = b < SMALLEST_NORMAL ? SMALLEST_NORMAL : b;
    }
    return 0;
}

/* The mean of the divergences of both from their mean, from log1p of share_differences; where these are not above -0.5, from
 * the logarithms of doubled_shares, which may be NULL. */
VECTORISED static int64_t OF_WIDTH(mean_divergences)(int64_t count, const real *both, const real *logs, const real *far,
                                                     real *terms)
{
    for (int64_t i = 0; i < count; i++) {
        real x = both[i], y = both[count + i], of_x = logs[i], of_y = logs[count + i];
        if (far) {
            real difference = (x - y) / (x + y);
            of_x = difference > (real)-0.5 ? of_x : far[i];
            of_y = -difference > (real)-0.5 ? of_y : far[count + i];
        }
        terms[i] = (x * of_x + y * of_y) * (real)0.5;
    }
    return 0;
}
