/* Procrustes disparities of pairs of point clouds: the singular values of the small product by one-sided Jacobi rotations. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST_DIMENSIONS 16
#define MOST_SWEEPS 60
#define EPSILON 2.220446049250313e-16

typedef double Matrix[MOST_DIMENSIONS][MOST_DIMENSIONS];

static double dot(const double *x, const double *y, int64_t size)
{
    double sums[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (int64_t k = 0; k < 4; k++)
            sums[k] += x[i + k] * y[i + k];
    for (; i < size; i++)
        sums[0] += x[i] * y[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* The same of few numbers. */
static inline double short_dot(const double *x, const double *y, int64_t size)
{
    double sum = 0;
    for (int64_t i = 0; i < size; i++)
        sum += x[i] * y[i];
    return sum;
}

static double total(const double *x, int64_t size)
{
    double sums[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (int64_t k = 0; k < 4; k++)
            sums[k] += x[i + k];
    for (; i < size; i++)
        sums[0] += x[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void extent(const double *x, int64_t size, double *low, double *high)
{
    double lows[4] = {x[0], x[0], x[0], x[0]}, highs[4] = {x[0], x[0], x[0], x[0]};
    int64_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (int64_t k = 0; k < 4; k++) {
            lows[k] = x[i + k] < lows[k] ? x[i + k] : lows[k];
            highs[k] = x[i + k] > highs[k] ? x[i + k] : highs[k];
        }
    for (; i < size; i++) {
        lows[0] = x[i] < lows[0] ? x[i] : lows[0];
        highs[0] = x[i] > highs[0] ? x[i] : highs[0];
    }
    *low = fmin(fmin(lows[0], lows[1]), fmin(lows[2], lows[3]));
    *high = fmax(fmax(highs[0], highs[1]), fmax(highs[2], highs[3]));
}

static void multiply(double *x, double factor, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        x[i] *= factor;
}

/* points (m, d) as rows of coordinates (d, m), around 0 with a sum of squares of 1; whether not all points are the same. */
static int standardize(double *rows, const double *points, int64_t m, int64_t d)
{
    double largest = 0;
    for (int64_t k = 0; k < d; k++) {
        double *row = rows + k * m, low, high;
        for (int64_t i = 0; i < m; i++)
            row[i] = points[i * d + k];
        extent(row, m, &low, &high);
        double middle = low * 0.5 + high * 0.5;
        for (int64_t i = 0; i < m; i++)
            row[i] -= middle;
        double mean = total(row, m) / (double)m;
        for (int64_t i = 0; i < m; i++)
            row[i] -= mean;
        largest = fmax(largest, fmax(fabs(low - middle - mean), fabs(high - middle - mean)));
    }
    if (largest == 0)
        return 0;
    double step = largest < 1e-290 ? 0x1p200 : largest > 1e290 ? 0x1p-200 : 1; /* so that 1 / largest is exact enough */
    if (step != 1)
        multiply(rows, step, m * d);
    multiply(rows, 1 / (largest * step), m * d);
    multiply(rows, 1 / sqrt(dot(rows, rows, m * d)), m * d);
    return 1;
}

static void rotate(double *x, double *y, int64_t d, double cosine, double sine)
{
    for (int64_t k = 0; k < d; k++) {
        double a = x[k], b = y[k];
        x[k] = cosine * a - sine * b;
        y[k] = sine * a + cosine * b;
    }
}

/* Make the columns orthogonal by rotations, which are also those of `turned`: columns[k] is column k. */
static void diagonalize(Matrix columns, Matrix turned, int64_t d)
{
    for (int sweep = 0, changed = 1; changed && sweep < MOST_SWEEPS; sweep++) {
        changed = 0;
        for (int64_t p = 0; p < d; p++)
            for (int64_t q = p + 1; q < d; q++) {
                double a = short_dot(columns[p], columns[p], d), b = short_dot(columns[q], columns[q], d);
                double c = short_dot(columns[p], columns[q], d);
                if (c * c <= EPSILON * EPSILON * a * b)
                    continue;
                double zeta = (b - a) / (2 * c);
                double tangent = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
                double cosine = 1 / sqrt(1 + tangent * tangent);
                rotate(columns[p], columns[q], d, cosine, cosine * tangent);
                rotate(turned[p], turned[q], d, cosine, cosine * tangent);
                changed |= c * c > EPSILON * a * b; /* what is left of less is below the precision: it is squared */
            }
    }
}

/* Subtract from x what it has in common with unit vectors, twice; what is left of its length. */
static double remainder_of(double *x, Matrix units, int64_t count, int64_t d)
{
    for (int64_t again = 0; again < 2; again++)
        for (int64_t k = 0; k < count; k++) {
            double common = short_dot(x, units[k], d);
            for (int64_t i = 0; i < d; i++)
                x[i] -= common * units[k][i];
        }
    return sqrt(short_dot(x, x, d));
}

/* A unit vector at right angles to the units before it: along `column`, or any where that is too short to tell. */
static void next_unit(Matrix units, int64_t count, const double *column, double size, int64_t d)
{
    double *unit = units[count];
    memcpy(unit, column, (size_t)d * sizeof *unit);
    double left = remainder_of(unit, units, count, d);
    for (int64_t k = 0; k < d && left <= size / 2; k++) {
        memset(unit, 0, (size_t)d * sizeof *unit);
        unit[k] = 1;
        left = remainder_of(unit, units, count, d);
        size = 1 / sqrt((double)d); /* one of the axes is so far from the others, at least */
    }
    for (int64_t i = 0; i < d; i++)
        unit[i] /= left;
}

/* x is changed. */
static double disparity(double *x, const double *y, int64_t m, int64_t d)
{
    Matrix columns, turned, units, rotation;
    double sizes[MOST_DIMENSIONS], scale = 0;
    int64_t order[MOST_DIMENSIONS];
    for (int64_t p = 0; p < d; p++)
        for (int64_t q = 0; q < d; q++) {
            columns[q][p] = dot(x + p * m, y + q * m, m);
            turned[q][p] = p == q;
            rotation[q][p] = 0;
        }
    diagonalize(columns, turned, d);
    for (int64_t k = 0; k < d; k++) {
        int64_t place = k;
        scale += sizes[k] = sqrt(short_dot(columns[k], columns[k], d));
        for (; place && sizes[order[place - 1]] < sizes[k]; place--)
            order[place] = order[place - 1];
        order[place] = k;
    }
    for (int64_t k = 0; k < d; k++) {
        next_unit(units, k, columns[order[k]], sizes[order[k]], d);
        for (int64_t p = 0; p < d; p++)
            for (int64_t q = 0; q < d; q++)
                rotation[p][q] += units[k][p] * turned[order[k]][q];
    }
    for (int64_t p = 0; p < d; p++)
        for (int64_t q = 0; q < d; q++)
            for (int64_t i = 0; i < m; i++)
                x[p * m + i] -= scale * rotation[p][q] * y[q * m + i];
    return dot(x, x, m * d);
}

/* disparities: (n); -1 where all points of the first cloud are the same, -2 where those of the second are. preds, target:
 * (n, m, d), finite. room: twice the size of a cloud. */
void assay_procrustes(double *disparities, const double *preds, const double *target, int64_t n, int64_t m, int64_t d,
                      double *room)
{
    for (int64_t k = 0; k < n; k++) {
        double *y = room + m * d;
        if (!standardize(room, preds + k * m * d, m, d))
            disparities[k] = -1;
        else if (!standardize(y, target + k * m * d, m, d))
            disparities[k] = -2;
        else
            disparities[k] = disparity(room, y, m, d);
    }
}
